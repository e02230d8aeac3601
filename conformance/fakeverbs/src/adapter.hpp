// This process's share of the adapter: its segment, the tables that lead from numbers to objects, and the
// thread that goes on with what had to wait.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "device_thread.hpp"
#include "events.hpp"
#include "regions.hpp"
#include "segment.hpp"
#include "settings.hpp"

namespace fakeverbs {

class CompletionQueue;
class Context;
class QueuePair;
class ReceivePool;

using Clock = std::chrono::steady_clock;

class Adapter {
 public:
  // The one of this process, which lives while somebody holds it; a forked child has one of its own. Null and
  // errno when it cannot be made.
  [[nodiscard]] static std::shared_ptr<Adapter> acquire();
  explicit Adapter(std::shared_ptr<Segment> segment);
  Adapter(const Adapter&) = delete;
  Adapter& operator=(const Adapter&) = delete;
  ~Adapter();

  [[nodiscard]] std::uint32_t slot() const { return slot_; }
  [[nodiscard]] Segment& segment() const { return *segment_; }
  [[nodiscard]] const std::shared_ptr<Segment>& shared_segment() const { return segment_; }
  [[nodiscard]] Arena& arena() { return arena_; }
  [[nodiscard]] RegionTable& regions() { return regions_; }
  [[nodiscard]] const EventSender& events() const { return events_; }
  [[nodiscard]] std::uint32_t next_channel() { return channels_.fetch_add(1) + 1; }
  [[nodiscard]] std::uint32_t next_domain() { return domains_.fetch_add(1) + 1; }

  // The segment of the process that owns the queue pair with this number; null when there is none.
  [[nodiscard]] std::shared_ptr<Segment> segment_of(std::uint32_t qp_num);

  // Queue pairs. `reserve` answers a number whose place in the table is free, 0 when the table is full.
  [[nodiscard]] std::uint32_t reserve_number();
  // Queue pairs, completion queues, shared receive queues and regions that there are.
  [[nodiscard]] std::uint64_t live_objects();
  void add(QueuePair& pair);
  void remove(QueuePair& pair);
  // Safe while the caller holds a lock that `remove`'s caller takes afterwards.
  [[nodiscard]] QueuePair* find(std::uint32_t qp_num) const;

  [[nodiscard]] std::uint32_t add(CompletionQueue& queue);
  void remove(CompletionQueue& queue);
  [[nodiscard]] std::uint32_t add(ReceivePool& queue);
  void remove(ReceivePool& queue);
  void add(Context& context);
  void remove(Context& context);

  // Runs `use` with the object, which cannot go away meanwhile; with null when it is gone.
  template <class Use>
  void with_completion_queue(std::uint32_t handle, Use&& use);
  template <class Use>
  void with_shared_queue(std::uint32_t handle, Use&& use);
  template <class Use>
  void with_queue_pair(std::uint32_t number, Use&& use);
  template <class Use>
  void for_each_queue_pair(Use&& use);
  template <class Use>
  void for_each_completion_queue(Use&& use);
  template <class Use>
  void for_each_context(Use&& use);

  // The device thread looks at everything soon.
  void wake() { segment_->ring(); }
  // No later than this.
  void wake_at(Clock::time_point when);

 private:
  void run();
  void look_at_everything(Clock::time_point now);
  void sleep_until_rung(std::uint32_t seen, Clock::time_point now);

  std::shared_ptr<Segment> segment_;
  std::uint32_t slot_;
  Arena arena_;
  RegionTable regions_;
  EventSender events_;
  std::atomic<std::uint32_t> channels_{0};
  std::atomic<std::uint32_t> domains_{0};

  std::mutex peers_mutex_;
  std::array<std::weak_ptr<Segment>, max_processes> peers_;

  // Objects stay while this is held. Taken before any lock of theirs, never after.
  std::mutex objects_mutex_;
  std::array<std::atomic<QueuePair*>, max_queue_pairs> queue_pairs_{};
  std::uint32_t queue_pair_count_ = 0;
  std::uint32_t queue_pairs_end_ = 0;  // one past the highest place in use
  std::map<std::uint32_t, CompletionQueue*> completion_queues_;
  std::map<std::uint32_t, ReceivePool*> shared_queues_;
  std::vector<Context*> contexts_;
  std::uint32_t next_handle_ = 1;

  std::atomic<std::int64_t> next_look_;  // nanoseconds of Clock
  std::atomic<bool> stopping_{false};
  DeviceThread thread_{[this] { run(); }};
};

template <class Use>
void Adapter::with_completion_queue(std::uint32_t handle, Use&& use) {
  const std::lock_guard guard(objects_mutex_);
  const auto found = completion_queues_.find(handle);
  use(found == completion_queues_.end() ? nullptr : found->second);
}

template <class Use>
void Adapter::with_shared_queue(std::uint32_t handle, Use&& use) {
  const std::lock_guard guard(objects_mutex_);
  const auto found = shared_queues_.find(handle);
  use(found == shared_queues_.end() ? nullptr : found->second);
}

template <class Use>
void Adapter::with_queue_pair(std::uint32_t number, Use&& use) {
  const std::lock_guard guard(objects_mutex_);
  use(find(number));
}

template <class Use>
void Adapter::for_each_queue_pair(Use&& use) {
  const std::lock_guard guard(objects_mutex_);
  for (std::uint32_t index = 0; index < queue_pairs_end_; ++index) {
    if (QueuePair* pair = queue_pairs_[index].load(std::memory_order_acquire)) use(*pair);
  }
}

template <class Use>
void Adapter::for_each_completion_queue(Use&& use) {
  const std::lock_guard guard(objects_mutex_);
  for (const auto& [handle, queue] : completion_queues_) use(*queue);
}

template <class Use>
void Adapter::for_each_context(Use&& use) {
  const std::lock_guard guard(objects_mutex_);
  for (Context* context : contexts_) use(*context);
}

}  // namespace fakeverbs
