#include "weft/receive_queue.hpp"

#include "objects/receive_queue_core.hpp"

namespace weft {

ReceiveQueue::ReceiveQueue(std::shared_ptr<core::ReceiveQueueState> state) noexcept
    : path_(state != nullptr ? &state->provider() : nullptr), state_(std::move(state)) {}

void ReceiveQueue::set_low_water(std::uint32_t mark) {
  if (state_ == nullptr) throw Error(Status::invalid_argument, "this ReceiveQueue names no queue");
  if (!state_->context().is_inert()) state_->provider().set_low_water(mark);
}

}  // namespace weft
