// One of the device's completion queues. It never overruns: whoever attaches to it reserves an entry for
// everything that can be outstanding, flushed requests included (CMP-6).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "handles.hpp"

namespace weft::verbs {

class Fabric;
class SharedReceives;

class DeviceQueue {
 public:
  // Room for at least `wanted` entries; `extended`: read field by field (ibv_cq_ex) when the device can, see
  // is_extended. Throws Error.
  DeviceQueue(const Fabric& fabric, ibv_comp_channel* channel, std::uint32_t wanted, bool extended);

  // Entries that pairs on this queue can produce; a shared receive queue counts once, however many pairs take
  // from it.
  [[nodiscard]] bool has_room(std::uint32_t entries, const SharedReceives* shared,
                              std::uint32_t shared_depth) const noexcept {
    return used_ + entries + (counts(shared) ? 0 : shared_depth) <= capacity_;
  }
  void take_room(std::uint32_t entries, const SharedReceives* shared, std::uint32_t shared_depth);
  void give_room(std::uint32_t entries, const SharedReceives* shared, std::uint32_t shared_depth) noexcept;

  // Reads at most as many entries as there are places; negative when the queue is broken.
  [[nodiscard]] int poll(std::span<ibv_wc> entries) noexcept {
    return poll_(queue_.get(), static_cast<int>(entries.size()), entries.data());
  }
  // What poll calls: the device's own function, or ours where entries are read field by field.
  using PollFunction = int (*)(ibv_cq* queue, int room, ibv_wc* entries);
  [[nodiscard]] PollFunction poll_function() const noexcept { return poll_; }
  [[nodiscard]] bool is_extended() const noexcept { return extended_; }
  [[nodiscard]] bool request_notification() noexcept { return ibv_req_notify_cq(queue_.get(), 0) == 0; }
  void note_event() noexcept { ++events_; }

  [[nodiscard]] ibv_cq* get() const noexcept { return queue_.get(); }
  [[nodiscard]] std::uint32_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] bool unused() const noexcept { return used_ == 0; }
  void leave_to_parent() noexcept { static_cast<void>(queue_.release()); }

  DeviceQueue(DeviceQueue&&) noexcept = default;
  DeviceQueue& operator=(DeviceQueue&&) noexcept = default;
  ~DeviceQueue();

 private:
  struct SharedUse {
    const SharedReceives* shared;
    std::uint32_t pairs;
  };
  [[nodiscard]] bool counts(const SharedReceives* shared) const noexcept {
    return shared == nullptr || std::any_of(shared_.begin(), shared_.end(),
                                            [shared](const SharedUse& use) { return use.shared == shared; });
  }

  [[nodiscard]] bool create_extended(const Fabric& fabric, ibv_comp_channel* channel,
                                     std::uint32_t wanted) noexcept;

  CompletionQueueHandle queue_;
  PollFunction poll_ = nullptr;
  bool extended_ = false;
  std::uint32_t capacity_ = 0;
  std::uint32_t used_ = 0;
  unsigned events_ = 0;  // to be acknowledged before it is destroyed
  std::vector<SharedUse> shared_;
};

}  // namespace weft::verbs
