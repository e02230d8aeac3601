// A completion queue that the context's helper looks after while the program stays away (PRG-1, PRG-2,
// PRG-5), that can be slept on, and that other queues can drive as well. How its endpoints move bytes is left
// to what derives from it.
#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

#include "group.hpp"

namespace weft::engine {

class HelpedContext;

class HelpedQueue : public Group {
 public:
  // Throws Error(resource_limit) when there is no descriptor left.
  HelpedQueue(HelpedContext& context, std::uint32_t capacity, provider::QueueEvents& events);
  // What derives calls leave_helper_alone() first in its destructor.
  ~HelpedQueue() override;

  // ---- provider::CompletionQueue
  [[nodiscard]] int descriptor() override { return epoll_; }

  // Polling `other` (a queue that takes sends' completions of endpoints led by this one) drives this group as
  // well.
  void driven_by(HelpedQueue& other);
  // The other queue goes.
  void part_from(HelpedQueue& other) noexcept;

  // ---- for the helper
  // One round for a program that stays away; false when the program is inside just now.
  virtual bool drive_for_absent() noexcept = 0;
  // Whether the helper can sleep until descriptor() is readable: nothing is there, and what comes shows.
  [[nodiscard]] virtual bool may_sleep() noexcept { return true; }
  // Work that takes too long for the program to wait for; without the gate.
  virtual void serve() noexcept {}
  // Sends what is held back; true when something may still be.
  bool send_held_back() noexcept;
  virtual void close_in_child() noexcept;

  // The helper's own notes.
  struct Watch {
    std::uint64_t seen_activity = 0;
    bool away = false;  // in the helper's epoll set
    int quiet_rounds = 0;
  };
  Watch& helper_notes() noexcept { return watch_; }
  // The helper's tick while the program polls: what is held back leaves with the next poll.
  void set_tick() noexcept { tick_.store(true, std::memory_order_relaxed); }
  // The helper is about to sleep until something arrives; from here on it must be told of anything else.
  void set_helper_sleeps(bool sleeps) noexcept { helper_sleeps_.store(sleeps); }
  // Something is stuck that no descriptor tells of when it can go on: look often.
  [[nodiscard]] bool stuck() const noexcept { return stuck_.load(std::memory_order_relaxed); }
  // A poll took what a thread may sleep for, and the fabric must be told again that somebody does.
  [[nodiscard]] bool unprepared() const noexcept { return unprepared_.load(std::memory_order_relaxed); }

 protected:
  void want_helper() noexcept final {
    if (helper_sleeps_.load(std::memory_order_relaxed)) [[unlikely]]
      wake_helper();
  }
  void want_helper_soon() noexcept final;
  void leave_helper_alone() noexcept;

  // ---- what derives implements, with the gate held
  // One round of moving bytes; `somebody_sleeps`: a thread waits for this queue's descriptor.
  virtual void drive(bool somebody_sleeps) noexcept = 0;
  // A call of the program did so while a thread sleeps; what it took may be what would have woken that one.
  virtual void drove_beside_sleeper() noexcept {}
  // Whatever comes from now on makes the descriptor readable; false when it cannot be said, or something is
  // there already.
  [[nodiscard]] virtual bool prepare_sleep() noexcept = 0;
  // Whoever sleeps on this epoll descriptor wakes for this queue.
  virtual void watch_in(int epoll) noexcept = 0;

  // Somebody waits for this queue's descriptor, or for that of a queue which drives this one.
  [[nodiscard]] bool slept_on() const noexcept;
  void wake_sleepers() noexcept;
  // Calls `each` with the epoll descriptor of every queue that drives this one.
  template <class Each>
  void for_drivers(const Each& each) const noexcept {
    for (const HelpedQueue* driver : drivers_) each(driver->epoll_);
  }
  void drive_others() noexcept;
  // As prepare_sleep, for the queues this one drives.
  [[nodiscard]] bool prepare_others() noexcept;
  [[nodiscard]] bool drives_others() const noexcept { return !also_.empty(); }
  [[nodiscard]] bool ticked() const noexcept { return tick_.load(std::memory_order_relaxed); }
  void tick() noexcept {
    tick_.store(false, std::memory_order_relaxed);
    release_held_back();
  }
  void set_unprepared(bool unprepared) noexcept { unprepared_.store(unprepared, std::memory_order_relaxed); }
  void set_stuck(bool stuck) noexcept { stuck_.store(stuck, std::memory_order_relaxed); }
  [[nodiscard]] HelpedContext& helped_context() noexcept { return context_; }
  [[nodiscard]] int epoll() const noexcept { return epoll_; }

 private:
  void wake_helper() noexcept;

  HelpedContext& context_;
  int epoll_ = -1;
  std::vector<HelpedQueue*> also_;     // groups this queue drives besides its own
  std::vector<HelpedQueue*> drivers_;  // those that drive this one
  Watch watch_;
  std::atomic<bool> helper_sleeps_{false};
  std::atomic<bool> tick_{false};
  std::atomic<bool> stuck_{false};
  std::atomic<bool> unprepared_{false};
};

}  // namespace weft::engine
