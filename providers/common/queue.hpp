// The completion queue under the engine (native providers can use it as well): a ring whose room is reserved
// at post, and a list of reporters for everything that uses no room (CMP-6).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "gate.hpp"
#include "weft/completion.hpp"
#include "weft/provider/queues.hpp"

namespace weft::engine {

class Queue;

// Something with entries of its own to hand out: an endpoint that came up or ended, a receive queue at its
// mark. It keeps its place among the ring's entries: those pushed before it come first, those pushed later
// come after.
class Reporter {
 public:
  virtual ~Reporter() = default;
  // Writes at most `room` entries; adds to `released` the reservations they give back. Called with the gate
  // held.
  virtual std::size_t hand_out(Completion* out, std::size_t room, std::uint32_t& released) noexcept = 0;
  [[nodiscard]] virtual bool has_more() const noexcept = 0;

 private:
  friend class Queue;
  Reporter* next_ = nullptr;
  std::uint64_t after_ = 0;
  bool queued_ = false;
};

class Queue : public provider::CompletionQueue {
 public:
  Queue(ThreadMode mode, std::uint32_t capacity, provider::QueueEvents& events);

  // The gate of the progress group this queue leads. All functions below want it held, by the program or the
  // helper, unless they say otherwise.
  [[nodiscard]] Gate& gate() noexcept { return gate_; }

  // Room for one more signalled operation or receive (CMP-6).
  [[nodiscard]] bool reserve() noexcept {
    if (shared_.load(std::memory_order_acquire)) [[unlikely]]
      return reserve_shared();
    if (used_ >= capacity_) [[unlikely]]
      return false;
    ++used_;
    return true;
  }
  // The same for up to `most` of them; returns for how many. What is not used is given back by release.
  [[nodiscard]] std::uint32_t reserve_up_to(std::uint32_t most) noexcept {
    std::uint32_t count = 0;
    if (shared_.load(std::memory_order_acquire)) [[unlikely]] {
      while (count < most && reserve_shared()) ++count;
      return count;
    }
    count = std::min(most, capacity_ - used_);
    used_ += count;
    return count;
  }
  // The same while nobody else comes to the ring.
  [[nodiscard]] bool is_shared() const noexcept { return shared_.load(std::memory_order_acquire); }
  [[nodiscard]] bool reserve_unshared() noexcept {
    if (used_ >= capacity_) [[unlikely]]
      return false;
    ++used_;
    return true;
  }
  void release_unshared(std::uint32_t count) noexcept { used_ -= count; }
  void release(std::uint32_t count) noexcept {
    if (shared_.load(std::memory_order_acquire)) [[unlikely]]
      return release_shared(count);
    used_ -= count;
  }

  // Room was reserved. `fill` writes every field of the entry, in its place.
  template <class Fill>
  void push_filled(const Fill& fill) noexcept {
    const MaybeLock lock(*this);
    fill(ring_[pushed_ & mask_]);
    ++pushed_;
    if (armed_.load(std::memory_order_relaxed)) [[unlikely]]
      signal();
  }
  void push(const Completion& entry) noexcept {
    push_filled([&entry](Completion& place) { place = entry; });
  }
  void add(Reporter& reporter) noexcept;
  void remove(Reporter& reporter) noexcept;

  // Hands out what is there, in order.
  std::size_t take(Completion* out, std::size_t room) noexcept {
    if (!has_entries() && !shared_.load(std::memory_order_relaxed)) return 0;
    return take_entries(out, room);
  }
  [[nodiscard]] bool has_entries() const noexcept { return pushed_ != popped_ || reporters_ != nullptr; }
  // Forgets the entries of an endpoint whose last handle is gone.
  void drop_entries_of(std::uint32_t endpoint_id) noexcept;

  // An endpoint led by another group pushes into this queue as well (split send and receive queues): from now
  // on the ring has a lock of its own, inside the gate.
  void share() noexcept { shared_.store(true, std::memory_order_release); }

  // Calls by which the program drives this group; the helper watches them to see that it stays away.
  [[nodiscard]] std::uint64_t activity() const noexcept { return activity_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool armed() const noexcept { return armed_.load(std::memory_order_relaxed); }

 protected:
  void note_activity() noexcept {
    activity_.store(activity_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  // True when armed: nothing is there, and the next entry makes the core's descriptor readable.
  [[nodiscard]] bool arm_ring() noexcept;
  // While a poll is under way what it pushes needs no signal; what it leaves behind does: a sleeper takes it
  // (PRG-3).
  [[nodiscard]] bool pause_signals() noexcept {
    const bool armed = armed_.load(std::memory_order_relaxed);
    if (armed) armed_.store(false, std::memory_order_relaxed);
    return armed;
  }
  void resume_signals() noexcept;
  // Whoever sleeps looks again, though there may be nothing.
  void wake_sleeper() noexcept {
    const MaybeLock lock(*this);
    if (armed_.load(std::memory_order_relaxed)) signal();
  }

 private:
  [[nodiscard]] bool reserve_shared() noexcept;
  void release_shared(std::uint32_t count) noexcept;
  std::size_t take_entries(Completion* out, std::size_t room) noexcept;
  void signal() noexcept {
    armed_.store(false, std::memory_order_relaxed);
    events_.readable();
  }

  class MaybeLock {
   public:
    explicit MaybeLock(Queue& queue) noexcept
        : queue_(queue.shared_.load(std::memory_order_acquire) ? &queue : nullptr) {
      if (queue_ != nullptr) queue_->ring_lock_.lock();
    }
    ~MaybeLock() {
      if (queue_ != nullptr) queue_->ring_lock_.unlock();
    }
    MaybeLock(const MaybeLock&) = delete;
    MaybeLock& operator=(const MaybeLock&) = delete;

   private:
    Queue* queue_;
  };

  Gate gate_;
  provider::QueueEvents& events_;
  std::unique_ptr<Completion[]> ring_;
  std::uint64_t mask_;
  std::uint32_t capacity_;
  std::uint32_t used_ = 0;
  std::uint64_t pushed_ = 0;
  std::uint64_t popped_ = 0;
  Reporter* reporters_ = nullptr;
  Reporter* last_reporter_ = nullptr;
  std::atomic<bool> armed_{false};
  std::atomic<bool> shared_{false};
  std::atomic<std::uint64_t> activity_{0};
  std::mutex ring_lock_;
};

}  // namespace weft::engine
