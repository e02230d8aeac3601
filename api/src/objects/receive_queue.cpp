#include "weft/receive_queue.hpp"

#include "objects/receive_queue_core.hpp"

namespace weft {

Status ReceiveQueue::receive(const Segment& segment, std::uint64_t context) noexcept {
  const ReceiveRequest request{.context = context, .segments = {&segment, 1}};
  return post_receives({&request, 1}).status;
}

PostResult ReceiveQueue::post_receives(std::span<const ReceiveRequest> requests) noexcept {
  if (state_ == nullptr) [[unlikely]]
    return {Status::not_connected, 0};
  return state_->provider().post(requests.data(), requests.size());
}

void ReceiveQueue::set_low_water(std::uint32_t mark) {
  if (state_ == nullptr) throw Error(Status::invalid_argument, "this ReceiveQueue names no queue");
  if (!state_->context().is_inert()) state_->provider().set_low_water(mark);
}

}  // namespace weft
