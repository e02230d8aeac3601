#include "gate.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "program_memory.hpp"  // tells whether the thread sanitizer is there

namespace weft::engine {

bool asymmetric_barrier_available() noexcept {
#ifdef WEFT_THREAD_SANITIZER
  return false;
#else
  static const bool available = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
  return available;
#endif
}

void asymmetric_barrier() noexcept { syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0); }

void Gate::lock_slow() noexcept {
  // A short spin first: the holder usually leaves within a system call.
  for (int i = 0; i < 100; ++i) {
    std::uint32_t expected = 0;
    if (word_.load(std::memory_order_relaxed) == 0 &&
        word_.compare_exchange_strong(expected, 1, std::memory_order_acquire)) {
      return;
    }
  }
  while (word_.exchange(2, std::memory_order_acquire) != 0) word_.wait(2, std::memory_order_relaxed);
}

void Gate::wake_waiter() noexcept { word_.notify_one(); }

void Gate::announce_fenced() noexcept {
  note_entry();
  inside_.store(1, std::memory_order_seq_cst);
  if (word_.load(std::memory_order_seq_cst) != 0) await_helper();
}

void Gate::await_helper() noexcept {
  const bool asymmetric = kind_ == Kind::announced;
  // Step back, or the helper would find the program inside each time it looks.
  do {
    inside_.store(0, std::memory_order_release);
    while (word_.load(std::memory_order_acquire) != 0) std::this_thread::yield();
    inside_.store(1, asymmetric ? std::memory_order_relaxed : std::memory_order_seq_cst);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  } while (word_.load(asymmetric ? std::memory_order_acquire : std::memory_order_seq_cst) != 0);
}

bool Gate::stake_claim() noexcept {
  std::uint32_t expected = 0;
  if (!word_.compare_exchange_strong(expected, 1, std::memory_order_seq_cst)) return false;
  if (kind_ == Kind::announced) asymmetric_barrier();
  return true;
}

bool Gate::claim() noexcept {
  if (!stake_claim()) return false;
  if (!program_inside()) return true;
  word_.store(0, std::memory_order_release);
  return false;
}

void Gate::claim_in_turn() noexcept {
  while (!stake_claim()) std::this_thread::yield();
  // The program leaves after its step and does not come back in past the claim.
  while (program_inside()) std::this_thread::yield();
}

}  // namespace weft::engine
