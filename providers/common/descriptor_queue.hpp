// A completion queue over endpoints that move their bytes through a descriptor each (a socket, say): which of
// them to look at, and how to sleep on all of them.
#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

#include "group.hpp"

namespace weft::engine {

class DescriptorContext;
class DescriptorEndpoint;

class DescriptorQueue final : public Group {
 public:
  DescriptorQueue(DescriptorContext& context, std::uint32_t capacity, provider::QueueEvents& events);
  ~DescriptorQueue() override;

  // ---- provider::CompletionQueue
  std::size_t poll(Completion* out, std::size_t room) noexcept override;
  [[nodiscard]] int descriptor() override { return epoll_; }
  [[nodiscard]] bool arm() noexcept override;

  // ---- for endpoints, with the gate held
  void add(DescriptorEndpoint& endpoint) noexcept;
  void remove(DescriptorEndpoint& endpoint) noexcept;
  void output_waits(DescriptorEndpoint& endpoint, bool waits) noexcept;

  // Polling `other` (a queue that takes sends' completions of endpoints led by this one) drives this group as
  // well.
  void driven_by(DescriptorQueue& other);
  void no_longer_drives(DescriptorQueue& other) noexcept;

  // ---- for the helper
  // One round for a program that stays away; false when the program is inside just now.
  bool drive_for_absent() noexcept;
  // Sends what is held back; true when something may still be.
  bool send_held_back() noexcept;
  [[nodiscard]] int epoll() const noexcept { return epoll_; }
  void close_in_child() noexcept;

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

 protected:
  void want_helper() noexcept override;

 private:
  void drive_others() noexcept;
  void drive(bool somebody_sleeps) noexcept;
  bool step(DescriptorEndpoint& endpoint) noexcept;
  void drive_ready(int most_events) noexcept;
  void watch(DescriptorEndpoint& endpoint) noexcept;
  void unwatch(DescriptorEndpoint& endpoint) noexcept;
  void unwatch_lone() noexcept;
  void watch_all() noexcept;
  void watch_output(DescriptorEndpoint& endpoint, bool output) noexcept;

  DescriptorContext& context_;
  int epoll_ = -1;
  std::vector<DescriptorEndpoint*> endpoints_;
  std::uint64_t removed_ = 0;                 // endpoints, ever
  std::vector<DescriptorEndpoint*> waiting_;  // for room in their sockets
  std::vector<DescriptorQueue*> also_;        // groups this queue drives besides its own
  DescriptorEndpoint* hot_ = nullptr;         // where data came last
  unsigned spins_ = 0;                        // polls since somebody wanted to sleep
  unsigned in_a_row_ = 0;                     // times that data came there without any elsewhere
  Watch watch_;
  std::atomic<bool> helper_sleeps_{false};
  std::atomic<bool> tick_{false};
};

}  // namespace weft::engine
