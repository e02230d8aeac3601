#include "device_queue.hpp"

#include <cerrno>

#include "errors.hpp"
#include "fabric.hpp"
#include "signals.hpp"

namespace weft::verbs {

namespace {

// Only what is read of an entry; of one that reports an error no more is valid than of a plain one.
void fill(ibv_cq_ex* from, ibv_wc& entry) noexcept {
  entry.wr_id = from->wr_id;
  entry.status = from->status;
  if (entry.status != IBV_WC_SUCCESS) {
    entry.vendor_err = ibv_wc_read_vendor_err(from);
    entry.qp_num = ibv_wc_read_qp_num(from);
    return;
  }
  if ((entry.wr_id & Tag::receive) == 0) return;
  entry.byte_len = ibv_wc_read_byte_len(from);
  entry.wc_flags = ibv_wc_read_wc_flags(from);
  if ((entry.wc_flags & IBV_WC_WITH_IMM) != 0) entry.imm_data = ibv_wc_read_imm_data(from);
  if ((entry.wr_id & Tag::shared) != 0) entry.qp_num = ibv_wc_read_qp_num(from);
}

int poll_extended(ibv_cq* queue, int room, ibv_wc* entries) noexcept {
  ibv_cq_ex* const extended = reinterpret_cast<ibv_cq_ex*>(queue);  // as ibv_cq_ex_to_cq has it
  if (room == 0) return 0;  // one entry is current as soon as polling has started
  ibv_poll_cq_attr nothing{};
  if (const int code = ibv_start_poll(extended, &nothing); code != 0) return code == ENOENT ? 0 : -1;
  int count = 0;
  do {
    fill(extended, entries[count++]);
  } while (count < room && ibv_next_poll(extended) == 0);
  ibv_end_poll(extended);
  return count;
}

}  // namespace

bool DeviceQueue::create_extended(const Fabric& fabric, ibv_comp_channel* channel,
                                  std::uint32_t wanted) noexcept {
  ibv_cq_init_attr_ex attributes{};
  attributes.cqe = wanted;
  attributes.channel = channel;
  attributes.wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_QP_NUM;
  ibv_cq_ex* const queue = ibv_create_cq_ex(fabric.device(), &attributes);
  if (queue == nullptr) return false;
  queue_.reset(ibv_cq_ex_to_cq(queue));
  poll_ = &poll_extended;
  extended_ = true;
  return true;
}

DeviceQueue::DeviceQueue(const Fabric& fabric, ibv_comp_channel* channel, std::uint32_t wanted,
                         bool extended) {
  const auto most = static_cast<std::uint32_t>(std::max(fabric.port().limits.max_cqe, 1));
  if (wanted > most) {
    throw Error(Status::resource_limit, "device " + fabric.port().name +
                                            " has completion queues of at most " + std::to_string(most) +
                                            " entries; this endpoint alone could fill " +
                                            std::to_string(wanted) + ": ask for smaller depths");
  }
  if (!extended || !create_extended(fabric, channel, wanted))
    queue_.reset(ibv_create_cq(fabric.device(), static_cast<int>(wanted), nullptr, channel, 0));
  if (!queue_) {
    fail_call("cannot make a completion queue of " + std::to_string(wanted) + " entries on device " +
                  fabric.port().name,
              errno, "the device has " + std::to_string(fabric.port().limits.max_cq) + " of them");
  }
  if (!extended_) poll_ = queue_->context->ops.poll_cq;
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
