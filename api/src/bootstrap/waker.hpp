// Wakes a thread that sleeps on a descriptor. Any thread, any lock held.
#pragma once

#include <atomic>

#include "bootstrap/descriptor.hpp"

namespace weft::core {

class Waker {
 public:
  // Throws Error(resource_limit) when no descriptor can be made.
  Waker();

  [[nodiscard]] int descriptor() const noexcept { return event_.get(); }
  void wake() noexcept;
  // Makes the descriptor quiet; look for what is to be done after this, not before.
  void clear() noexcept;

 private:
  Descriptor event_;
  std::atomic<bool> raised_{false};
};

}  // namespace weft::core
