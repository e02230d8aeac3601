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
  enum class Kind : std::uint8_t {
    announced,  // single, with the barrier
    fenced,     // single, without it
    locked      // safe
  };

  explicit Gate(ThreadMode mode) noexcept
      : kind_(mode == ThreadMode::safe         ? Kind::locked
              : asymmetric_barrier_available() ? Kind::announced
                                               : Kind::fenced) {}
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  void enter() noexcept {
    if (kind_ == Kind::announced) [[likely]] {
      note_entry();
      inside_.store(1, std::memory_order_relaxed);
      std::atomic_signal_fence(std::memory_order_seq_cst);
      if (word_.load(std::memory_order_acquire) != 0) [[unlikely]]
        await_helper();
    } else if (kind_ == Kind::locked) {
      lock();
    } else {
      announce_fenced();
    }
  }

  // For a data path made for one kind: no waiting, and nothing to be kept across it. False when another is
  // inside or wants to be, and for `fenced` always: enter() then.
  template <Kind kind>
  [[nodiscard, gnu::always_inline]] bool enter_at_once() noexcept {
    if constexpr (kind == Kind::announced) {
      note_entry();
      inside_.store(1, std::memory_order_relaxed);
      std::atomic_signal_fence(std::memory_order_seq_cst);
      if (word_.load(std::memory_order_acquire) == 0) [[likely]]
        return true;
      inside_.store(0, std::memory_order_release);
      return false;
    } else if constexpr (kind == Kind::locked) {
      std::uint32_t expected = 0;
      return word_.compare_exchange_strong(expected, 1, std::memory_order_acquire);
    } else {
      return false;
    }
  }
  template <Kind kind>
  [[gnu::always_inline]] void leave_as() noexcept {
    if constexpr (kind == Kind::locked) {
      unlock();
    } else {
      inside_.store(0, std::memory_order_release);
    }
  }

  // As enter, but does not wait for another thread (mode `safe`).
  [[nodiscard]] bool try_enter() noexcept {
    if (safe()) return try_enter_helper();
    enter();
    return true;
  }

  void leave() noexcept {
    if (kind_ != Kind::locked) [[likely]] {
      inside_.store(0, std::memory_order_release);
    } else {
      unlock();
    }
  }

  // The helper's way in; false when the program is inside.
  [[nodiscard]] bool try_enter_helper() noexcept {
    std::uint32_t expected = 0;
    if (safe()) return word_.compare_exchange_strong(expected, 1, std::memory_order_acquire);
    return claim();
  }
  // As above, but waits its turn: for control-path work of the helper and of other threads.
  void enter_helper() noexcept {
    if (safe()) {
      lock();
    } else {
      claim_in_turn();
    }
  }
  void leave_helper() noexcept {
    if (safe()) {
      unlock();
    } else {
      word_.store(0, std::memory_order_release);
    }
  }

  [[nodiscard]] Kind kind() const noexcept { return kind_; }
  [[nodiscard]] bool safe() const noexcept { return kind_ == Kind::locked; }
  // For a forked child, where the threads that were inside no longer exist.
  void reset() noexcept {
    word_.store(0, std::memory_order_relaxed);
    inside_.store(0, std::memory_order_relaxed);
  }

 private:
  void lock() noexcept {
    std::uint32_t expected = 0;
    if (!word_.compare_exchange_strong(expected, 1, std::memory_order_acquire)) [[unlikely]]
      lock_slow();
  }
  void unlock() noexcept {
    if (word_.exchange(0, std::memory_order_release) == 2) [[unlikely]]
      wake_waiter();
  }
  void lock_slow() noexcept;
  void wake_waiter() noexcept;

  // Mode `single` means one application thread at a time (THR-2).
  void note_entry() const noexcept {
    assert(inside_.load(std::memory_order_relaxed) == 0 &&
           "a second thread called into a context of mode single");
  }
  void announce_fenced() noexcept;
  void await_helper() noexcept;
  [[nodiscard]] bool stake_claim() noexcept;
  [[nodiscard]] bool claim() noexcept;
  void claim_in_turn() noexcept;
  [[nodiscard]] bool program_inside() const noexcept { return inside_.load(std::memory_order_seq_cst) != 0; }

  // safe: 0 free, 1 held, 2 held with waiters. single: 1 while the helper claims.
  std::atomic<std::uint32_t> word_{0};
  std::atomic<std::uint32_t> inside_{0};  // single: the program is inside
  const Kind kind_;
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
