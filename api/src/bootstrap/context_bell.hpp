// How a provider asks for service, from any thread. Made before the provider opens, because it may ask from
// that moment on.
#pragma once

#include <atomic>
#include <memory>

#include "bootstrap/waker.hpp"
#include "weft/provider/provider.hpp"

namespace weft::core {

class ContextBell final : public provider::ContextEvents {
 public:
  ContextBell() : waker_(std::make_shared<Waker>()) {}

  void request_service() noexcept override {
    if (!requested_.exchange(true)) waker_->wake();
  }
  [[nodiscard]] bool take_request() noexcept {
    return requested_.load(std::memory_order_relaxed) && requested_.exchange(false);
  }
  [[nodiscard]] const std::shared_ptr<Waker>& waker() const noexcept { return waker_; }

 private:
  const std::shared_ptr<Waker> waker_;
  std::atomic<bool> requested_{false};
};

}  // namespace weft::core
