#include "link.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <random>
#include <stdexcept>
#include <string>
#include <system_error>

#include "shape.hpp"

namespace weft::native {
Link::Link(Device& device, Exchange& exchange, const Work& work, bool /*initiator*/)
    : LinkMemory(work),
      exchange_(exchange),
      operation_(work.operation),
      receive_depth_(receive_depth_of(work)) {
  region_.reset(ibv_reg_mr(
      device.domain.get(), memory_.get(), 2 * half_size_,
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC));
  require_object(region_.get(), "cannot register " + std::to_string(2 * half_size_) +
                                    " bytes (is `ulimit -l` large enough?)");
  create_queue_pair(device, work);
  connect(device, exchange);
  receive_segment_ = {reinterpret_cast<std::uint64_t>(target().data()),
                      static_cast<std::uint32_t>(half_size_), region_->lkey};
  for (ibv_recv_wr& request : receive_requests_) {
    request.sg_list = &receive_segment_;
    request.num_sge = 1;
  }
}

void Link::create_queue_pair(Device& device, const Work& work) {
  const auto send_entries = static_cast<int>(work.queue_depth() + 1);
  send_queue_.reset(ibv_create_cq(device.context.get(), send_entries, nullptr, nullptr, 0));
  require_object(send_queue_.get(), "cannot create a completion queue of " + std::to_string(send_entries));
  receive_queue_.reset(
      ibv_create_cq(device.context.get(), static_cast<int>(receive_depth_ + 1), nullptr, nullptr, 0));
  require_object(receive_queue_.get(),
                 "cannot create a completion queue of " + std::to_string(receive_depth_ + 1));
  ibv_qp_init_attr initial{};
  initial.send_cq = send_queue_.get();
  initial.recv_cq = receive_queue_.get();
  initial.qp_type = IBV_QPT_RC;
  initial.cap.max_send_wr = work.queue_depth();
  initial.cap.max_recv_wr = receive_depth_;
  initial.cap.max_send_sge = 1;
  initial.cap.max_recv_sge = 1;
  initial.cap.max_inline_data = inline_limit;
  queue_pair_.reset(ibv_create_qp(device.domain.get(), &initial));
  if (!queue_pair_) {
    initial.cap.max_inline_data = 0;  // some devices have none
    queue_pair_.reset(ibv_create_qp(device.domain.get(), &initial));
  }
  require_object(queue_pair_.get(),
                 "cannot create a queue pair of depth " + std::to_string(work.queue_depth()));
  const bool carries_payload = !answers_itself(work.operation);
  if (carries_payload && size_ <= inline_limit && size_ <= initial.cap.max_inline_data) {
    inline_flag_ = IBV_SEND_INLINE;
  }
}

void Link::connect(const Device& device, Exchange& exchange) {
  std::random_device random;
  const auto atomic_limit = static_cast<std::uint32_t>(device.attributes.max_qp_rd_atom);
  Grant mine{};
  mine.address = reinterpret_cast<std::uint64_t>(target().data());
  mine.key = region_->rkey;
  mine.queue_pair_number = queue_pair_->qp_num;
  mine.packet_sequence = random() & 0xffffff;
  mine.local_identifier = device.port.lid;
  mine.outstanding_reads = std::min(atomic_limit, 255U);
  mine.path_mtu = device.port.active_mtu;
  mine.gid = device.gid;
  peer_ = exchange.swap(mine);

  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = Device::port_number;
  attributes.qp_access_flags =
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  require_success(ibv_modify_qp(queue_pair_.get(), &attributes,
                                IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
                  "cannot initialise the queue pair");
  const auto outstanding =
      static_cast<std::uint8_t>(std::min(mine.outstanding_reads, peer_.outstanding_reads));
  attributes = {};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = static_cast<ibv_mtu>(std::min(mine.path_mtu, peer_.path_mtu));
  attributes.dest_qp_num = peer_.queue_pair_number;
  attributes.rq_psn = peer_.packet_sequence;
  attributes.max_dest_rd_atomic = outstanding;
  attributes.min_rnr_timer = 12;  // 0.64 ms
  attributes.ah_attr.dlid = static_cast<std::uint16_t>(peer_.local_identifier);
  attributes.ah_attr.port_num = Device::port_number;
  attributes.ah_attr.is_global = 1;
  attributes.ah_attr.grh.dgid = peer_.gid;
  attributes.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(device.gid_index);
  attributes.ah_attr.grh.hop_limit = 64;
  require_success(ibv_modify_qp(queue_pair_.get(), &attributes,
                                IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
                  "cannot make the queue pair ready to receive");
  attributes = {};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = 14;   // 67 ms
  attributes.retry_cnt = 6;  // rxe takes 7 for "for ever" and would never notice a lost peer
  attributes.rnr_retry = 7;  // for ever
  attributes.sq_psn = mine.packet_sequence;
  attributes.max_rd_atomic = outstanding;
  require_success(ibv_modify_qp(queue_pair_.get(), &attributes,
                                IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
                  "cannot make the queue pair ready to send");
}

void Link::prepare(Request& request, Place& segment, std::uint64_t sequence) const {
  const std::uint64_t offset = slot_offset(sequence);
  segment = {reinterpret_cast<std::uint64_t>(memory_.get()) + offset, static_cast<std::uint32_t>(size_),
             region_->lkey};
  request = {};
  request.sg_list = &segment;
  request.num_sge = 1;
  request.wr.rdma.remote_addr = peer_.address + offset;
  request.wr.rdma.rkey = peer_.key;
  switch (operation_) {
    case Operation::send:
      request.opcode = IBV_WR_SEND;
      break;
    case Operation::write:
      request.opcode = IBV_WR_RDMA_WRITE;
      break;
    case Operation::read:
      request.opcode = IBV_WR_RDMA_READ;
      break;
    case Operation::write_with_immediate:
      request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
      break;
    case Operation::fetch_add:
      request.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
      request.wr.atomic.remote_addr = peer_.address;  // one counter, so that the sum can be checked
      request.wr.atomic.compare_add = 1;
      request.wr.atomic.rkey = peer_.key;
      break;
  }
}

void Link::join(std::span<Request> requests) {
  for (std::size_t index = 0; index < requests.size(); ++index)
    requests[index].next = index + 1 < requests.size() ? &requests[index + 1] : nullptr;
}

void Link::post(std::span<Request> chain) {
  ibv_send_wr* failed = nullptr;
  if (const int error = ibv_post_send(queue_pair_.get(), chain.data(), &failed); error != 0) {
    throw std::system_error(error, std::generic_category(), "ibv_post_send failed");
  }
}

void Link::post_receives(std::uint32_t count) {
  for (std::uint32_t index = 0; index + 1 < count; ++index) {
    receive_requests_[index].next = &receive_requests_[index + 1];
  }
  receive_requests_[count - 1].next = nullptr;
  ibv_recv_wr* failed = nullptr;
  if (const int error = ibv_post_recv(queue_pair_.get(), receive_requests_.data(), &failed); error != 0) {
    throw std::system_error(error, std::generic_category(), "ibv_post_recv failed");
  }
}

void Link::check(int count, std::span<const ibv_wc> completions) {
  if (count < 0) throw std::runtime_error("ibv_poll_cq failed");
  for (int index = 0; index < count; ++index) {
    const ibv_wc& completion = completions[static_cast<std::size_t>(index)];
    if (completion.status != IBV_WC_SUCCESS) {
      exchange_.check_peer();  // a flushed queue usually means that the peer went first
      throw std::runtime_error("request " + std::to_string(completion.wr_id) + " (" +
                               std::string(name_of(operation_)) +
                               ") failed: " + ibv_wc_status_str(completion.status));
    }
  }
}

}  // namespace weft::native
