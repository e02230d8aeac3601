// A receive queue shared by the endpoints of one completion queue: the device's own (RCQ-1, RCQ-2).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "bounce.hpp"
#include "common/queue.hpp"
#include "handles.hpp"
#include "records.hpp"
#include "weft/provider/queues.hpp"

namespace weft::verbs {

class Context;
class Queue;

// A receive, checked: its places for the device.
[[nodiscard]] Status place_receive(const Context& context, const ReceiveRequest& request,
                                   std::uint32_t most_segments, ibv_sge* places,
                                   std::uint32_t& count) noexcept;

// Turns a receive of more places than the device takes into one of our memory; false when there is none.
[[nodiscard]] bool bounce_receive(const Context& context, Bounce& bounce, ibv_sge* places,
                                  std::uint32_t& count) noexcept;

class SharedReceives final : public provider::ReceiveQueue, private engine::Reporter {
 public:
  SharedReceives(Context& context, Queue& group, std::uint32_t depth, std::uint64_t user_value);
  ~SharedReceives() override;

  PostResult post(const ReceiveRequest* requests, std::size_t count) noexcept override;
  void set_low_water(std::uint32_t mark) noexcept override;

  // ---- with the gate held
  [[nodiscard]] ibv_srq* native() const noexcept { return shared_.get(); }
  [[nodiscard]] std::uint32_t depth() const noexcept { return depth_; }
  [[nodiscard]] std::uint32_t posted() const noexcept { return posted_; }
  void note_dry() noexcept { some_are_dry_ = true; }
  [[nodiscard]] std::uint32_t device_depth() const noexcept { return depth_; }
  [[nodiscard]] Queue& group() noexcept { return group_; }
  // A message took the receive of this slot.
  struct Taken {
    std::uint64_t context = 0;
    bool reported = false;  // as cancelled, already
  };
  [[nodiscard]] Taken taken(std::uint32_t slot, std::uint64_t length) noexcept;
  [[nodiscard]] bool uses(std::uint64_t region) const noexcept;
  // Receives that name the region complete as cancelled. The device cannot give them back: a message that
  // takes one fails, without touching the memory.
  void cancel(std::uint64_t region) noexcept;
  void enter_child() noexcept;
  // Tries those that the device did not take; false when some are left.
  bool push_waiting() noexcept;

 private:
  struct Slot {
    std::uint64_t context = 0;
    std::array<std::uint64_t, segments_per_request> regions{};
    ReceivePlan plan;  // while it waits
    bool posted = false;
    bool cancelled = false;
    bool bounced = false;
  };
  std::size_t hand_out(Completion* out, std::size_t room, std::uint32_t& released) noexcept override;
  [[nodiscard]] bool has_more() const noexcept override { return low_water_due_; }
  void ring() noexcept;

  Context& context_;
  Queue& group_;
  const std::uint64_t user_value_;
  std::uint32_t depth_;
  SharedReceivesHandle shared_;
  std::vector<Slot> slots_;
  std::unique_ptr<Bounce[]> bounces_;  // only where the device takes too few segments
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> waiting_;  // slots that the device has not taken, in order
  std::uint32_t posted_ = 0;            // and not cancelled
  std::uint32_t low_water_ = 0;
  bool low_water_due_ = false;
  bool some_are_dry_ = false;  // endpoints whose peers try seldom
  bool below_ = false;         // since the mark was crossed
};

}  // namespace weft::verbs
