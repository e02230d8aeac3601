#include "device_queue.hpp"

#include <cerrno>

#include "errors.hpp"
#include "fabric.hpp"

namespace weft::verbs {

DeviceQueue::DeviceQueue(const Fabric& fabric, ibv_comp_channel* channel, std::uint32_t wanted) {
  const auto most = static_cast<std::uint32_t>(std::max(fabric.port().limits.max_cqe, 1));
  if (wanted > most) {
    throw Error(Status::resource_limit, "device " + fabric.port().name +
                                            " has completion queues of at most " + std::to_string(most) +
                                            " entries; this endpoint alone could fill " +
                                            std::to_string(wanted) + ": ask for smaller depths");
  }
  queue_.reset(ibv_create_cq(fabric.device(), static_cast<int>(wanted), nullptr, channel, 0));
  if (!queue_) {
    fail_call("cannot make a completion queue of " + std::to_string(wanted) + " entries on device " +
                  fabric.port().name,
              errno, "the device has " + std::to_string(fabric.port().limits.max_cq) + " of them");
  }
  // The device may give more; what it says counts.
  capacity_ = static_cast<std::uint32_t>(queue_->cqe);
}

DeviceQueue::~DeviceQueue() {
  // Destroying waits for acknowledgements that are missing.
  if (queue_ && events_ != 0) ibv_ack_cq_events(queue_.get(), events_);
}

void DeviceQueue::take_room(std::uint32_t entries, const SharedReceives* shared, std::uint32_t shared_depth) {
  if (shared != nullptr) {
    const auto known =
        std::find_if(shared_.begin(), shared_.end(), [&](const auto& use) { return use.shared == shared; });
    if (known != shared_.end()) {
      ++known->pairs;
    } else {
      shared_.push_back({shared, 1});
      used_ += shared_depth;
    }
  }
  used_ += entries;
}

void DeviceQueue::give_room(std::uint32_t entries, const SharedReceives* shared,
                            std::uint32_t shared_depth) noexcept {
  used_ -= entries;
  if (shared == nullptr) return;
  const auto known =
      std::find_if(shared_.begin(), shared_.end(), [&](const auto& use) { return use.shared == shared; });
  if (known == shared_.end() || --known->pairs != 0) return;
  shared_.erase(known);
  used_ -= shared_depth;
}

}  // namespace weft::verbs
