// What other threads tell the service: events of providers, answers of the resolver. Appending takes only
// this object's own lock, so that it can be done from anywhere, a provider's locks held included.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "bootstrap/waker.hpp"
#include "resolver.hpp"
#include "weft/status.hpp"

namespace weft::core {

struct Event {
  enum class Kind : std::uint8_t { failed, established, ring, drained, finished, resolved };
  Kind kind = Kind::finished;
  std::uint32_t endpoint = 0;
  Status cause = Status::ok;  // failed
  std::uint64_t number = 0;   // failed: detail; drained: messages sent
  std::int32_t native_code = 0;
  std::string text;
  Resolution resolution;  // resolved
};

// Outlives its context while a look-up is under way.
class Inbox {
 public:
  explicit Inbox(std::shared_ptr<Waker> waker) noexcept : waker_(std::move(waker)) {}

  void put(Event event) {
    {
      const std::lock_guard guard(mutex_);
      events_.push_back(std::move(event));
    }
    waker_->wake();
  }
  [[nodiscard]] std::vector<Event> take() {
    const std::lock_guard guard(mutex_);
    return std::exchange(events_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<Event> events_;
  const std::shared_ptr<Waker> waker_;
};

}  // namespace weft::core
