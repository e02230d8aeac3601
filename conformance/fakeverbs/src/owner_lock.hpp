// A lock between processes that survives the death of whoever holds it.
#pragma once

#include <atomic>
#include <cstdint>

namespace fakeverbs {

// Which process slots belong to living processes; given by the registry, so that this file needs nothing of
// it.
[[nodiscard]] bool process_is_alive(std::uint32_t slot);

class OwnerLock {
 public:
  // Never waits for long: false when somebody holds it, who may be stopped.
  [[nodiscard]] bool try_lock(std::uint32_t slot);
  // Waits, for as long as the holder lives.
  void lock(std::uint32_t slot);
  void unlock() { owner_.store(0, std::memory_order_release); }

 private:
  [[nodiscard]] bool take(std::uint32_t slot);
  std::atomic<std::uint32_t> owner_;  // 0 free, else slot + 1
};

}  // namespace fakeverbs
