// Who may touch a progress group (a completion queue with its endpoints) at this moment.
//
// Mode `safe`: a small lock. Mode `single`: the program's one thread at a time announces itself with plain
// stores; the helper thread claims, makes every running thread's earlier stores visible by membarrier(2), and
// reads the announcement. Either the helper sees the program inside and backs off, or the program sees the
// claim and waits for one short step. So the program pays no locked instruction (THR-2).
#pragma once

#include <atomic>
#include <cassert>
#include <cstdint>
#include <functional>
#include <thread>

#include "weft/attributes.hpp"

namespace weft::engine {

// True when the kernel offers the barrier and this build can rely on it (a race detector cannot see it).
[[nodiscard]] bool asymmetric_barrier_available() noexcept;
void asymmetric_barrier() noexcept;

class Gate {
 public:
  explicit Gate(ThreadMode mode) noexcept
      : safe_(mode == ThreadMode::safe), asymmetric_(asymmetric_barrier_available()) {}
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  void enter() noexcept {
    if (safe_) {
      lock();
    } else {
      announce();
    }
  }

  // As enter, but does not wait for another thread (mode `safe`).
  [[nodiscard]] bool try_enter() noexcept {
    if (safe_) return try_enter_helper();
    announce();
    return true;
  }

  void leave() noexcept {
    if (safe_) {
      unlock();
    } else {
      inside_.store(0, std::memory_order_release);
    }
  }

  // The helper's way in; false when the program is inside.
  [[nodiscard]] bool try_enter_helper() noexcept {
    std::uint32_t expected = 0;
    if (safe_) return word_.compare_exchange_strong(expected, 1, std::memory_order_acquire);
    return claim();
  }
  // As above, but waits its turn: for control-path work of the helper and of other threads.
  void enter_helper() noexcept {
    if (safe_) {
      lock();
    } else {
      claim_in_turn();
    }
  }
  void leave_helper() noexcept {
    if (safe_) {
      unlock();
    } else {
      word_.store(0, std::memory_order_release);
    }
  }

  [[nodiscard]] bool safe() const noexcept { return safe_; }
  // For a forked child, where the threads that were inside no longer exist.
  void reset() noexcept {
    word_.store(0, std::memory_order_relaxed);
    inside_.store(0, std::memory_order_relaxed);
  }

 private:
  void lock() noexcept {
    std::uint32_t expected = 0;
    if (!word_.compare_exchange_strong(expected, 1, std::memory_order_acquire)) lock_slow();
  }
  void unlock() noexcept {
    if (word_.exchange(0, std::memory_order_release) == 2) word_.notify_one();
  }
  void lock_slow() noexcept;

  void announce() noexcept {
#ifndef NDEBUG
    // Mode `single` means one application thread at a time (THR-2).
    assert(inside_.load(std::memory_order_relaxed) == 0 &&
           "a second thread called into a context of mode single");
#endif
    if (asymmetric_) {
      inside_.store(1, std::memory_order_relaxed);
      std::atomic_signal_fence(std::memory_order_seq_cst);
    } else {
      inside_.store(1, std::memory_order_seq_cst);
    }
    if (word_.load(asymmetric_ ? std::memory_order_acquire : std::memory_order_seq_cst) != 0) await_helper();
  }
  void await_helper() noexcept;
  [[nodiscard]] bool stake_claim() noexcept;
  [[nodiscard]] bool claim() noexcept;
  void claim_in_turn() noexcept;
  [[nodiscard]] bool program_inside() const noexcept {
    return inside_.load(asymmetric_ ? std::memory_order_acquire : std::memory_order_seq_cst) != 0;
  }

  // safe: 0 free, 1 held, 2 held with waiters. single: 1 while the helper claims.
  std::atomic<std::uint32_t> word_{0};
  std::atomic<std::uint32_t> inside_{0};  // single: the program is inside
  const bool safe_;
  const bool asymmetric_;
};

// Scoped entries.
class Entry {
 public:
  explicit Entry(Gate& gate) noexcept : gate_(gate) { gate_.enter(); }
  ~Entry() { gate_.leave(); }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

 private:
  Gate& gate_;
};

class HelperEntry {
 public:
  explicit HelperEntry(Gate& gate) noexcept : gate_(gate) { gate_.enter_helper(); }
  ~HelperEntry() { gate_.leave_helper(); }
  HelperEntry(const HelperEntry&) = delete;
  HelperEntry& operator=(const HelperEntry&) = delete;

 private:
  Gate& gate_;
};

}  // namespace weft::engine
