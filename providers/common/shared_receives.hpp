// A receive queue shared by the endpoints of one group (RCQ-1, RCQ-2).
#pragma once

#include <cstdint>

#include "group.hpp"
#include "records.hpp"
#include "weft/provider/queues.hpp"

namespace weft::engine {

class Context;
class Endpoint;

class SharedReceives final : public provider::ReceiveQueue, private Reporter {
 public:
  SharedReceives(Context& context, Group& group, std::uint32_t depth, std::uint64_t user_value);
  ~SharedReceives() override;

  PostResult post(const ReceiveRequest* requests, std::size_t count) noexcept override;
  void set_low_water(std::uint32_t mark) noexcept override;

  // ---- with the gate held
  // ------------------------------------------------------------------------------------------
  [[nodiscard]] Group& group() noexcept { return group_; }
  [[nodiscard]] std::uint32_t depth() const noexcept { return receives_.depth(); }
  // Takes the oldest receive for an endpoint; false when there is none.
  bool take(ReceiveRecord& record) noexcept {
    if (receives_.empty()) return false;
    record = receives_.front();
    take_first();
    return true;
  }
  // The oldest receive, or null; take_first() takes it.
  [[nodiscard]] const ReceiveRecord* first() noexcept {
    return receives_.empty() ? nullptr : &receives_.front();
  }
  void take_first() noexcept {
    ++receives_.head;
    if (receives_.size() < low_water_ && !below_) note_low_water();
  }
  // The endpoint has a message and found no receive: it is served in turn when one is posted.
  void wait(Endpoint& endpoint) noexcept;
  void forget(Endpoint& endpoint) noexcept;
  [[nodiscard]] bool uses(std::uint64_t region) const noexcept;
  // Receives that name the region complete as cancelled.
  void cancel(std::uint64_t region) noexcept;

 private:
  void note_low_water() noexcept;
  std::size_t hand_out(Completion* out, std::size_t room, std::uint32_t& released) noexcept override;
  [[nodiscard]] bool has_more() const noexcept override { return low_water_due_; }

  Context& context_;
  Group& group_;
  Ring<ReceiveRecord> receives_;
  const std::uint64_t user_value_;
  Endpoint* first_waiting_ = nullptr;
  Endpoint* last_waiting_ = nullptr;
  std::uint32_t low_water_ = 0;
  bool low_water_due_ = false;
  bool below_ = false;  // since the mark was crossed
};

}  // namespace weft::engine
