#include "owner_lock.hpp"

#include <sched.h>

#include <ctime>

namespace fakeverbs {

bool OwnerLock::take(std::uint32_t slot) {
  std::uint32_t nobody = 0;
  return owner_.compare_exchange_strong(nobody, slot + 1, std::memory_order_acquire);
}

bool OwnerLock::try_lock(std::uint32_t slot) {
  constexpr int turns = 200;
  for (int turn = 0; turn < turns; ++turn) {
    if (take(slot)) return true;
    if (turn % 20 == 19) ::sched_yield();
  }
  std::uint32_t holder = owner_.load(std::memory_order_relaxed);
  if (holder == 0 || process_is_alive(holder - 1)) return take(slot);
  return owner_.compare_exchange_strong(holder, slot + 1, std::memory_order_acquire);
}

void OwnerLock::lock(std::uint32_t slot) {
  while (!try_lock(slot)) {
    const timespec pause{0, 50'000};
    ::nanosleep(&pause, nullptr);
  }
}

}  // namespace fakeverbs
