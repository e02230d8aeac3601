// Posting: what is checked at once, and what becomes of the rest.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "faults.hpp"
#include "queue_pair.hpp"

namespace fakeverbs {
namespace {

bool is_atomic(std::uint32_t opcode) {
  return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

bool is_known(std::uint32_t opcode, bool with_atomics) {
  switch (opcode) {
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
    case IBV_WR_RDMA_READ:
      return true;
    default:
      return with_atomics && is_atomic(opcode);
  }
}

bool may_be_inline(std::uint32_t opcode) { return opcode != IBV_WR_RDMA_READ && !is_atomic(opcode); }

std::uint64_t bytes_of(const ibv_send_wr& request) {
  std::uint64_t bytes = 0;
  for (int index = 0; index < request.num_sge; ++index) bytes += request.sg_list[index].length;
  return bytes;
}

void fill(SendRequest& to, const ibv_send_wr& from) {
  to.wr_id = from.wr_id;
  to.opcode = from.opcode;
  to.flags = from.send_flags;
  to.imm_data = from.imm_data;
  to.segments = static_cast<std::uint32_t>(from.num_sge);
  to.inline_bytes = 0;
  if (is_atomic(from.opcode)) {
    to.remote_address = from.wr.atomic.remote_addr;
    to.key = from.wr.atomic.rkey;
    to.compare_add = from.wr.atomic.compare_add;
    to.swap = from.wr.atomic.swap;
  } else {
    to.remote_address = from.wr.rdma.remote_addr;
    to.key = from.wr.rdma.rkey;
  }
}

}  // namespace

int QueuePair::check_send(const ibv_send_wr& request) const {
  const ibv_qp_state now = state();
  if (now != IBV_QPS_RTS && now != IBV_QPS_ERR && now != IBV_QPS_SQE && now != IBV_QPS_SQD) return EINVAL;
  if (!is_known(request.opcode, faults().plan.limits.atomics)) return EINVAL;
  if (request.num_sge < 0 || static_cast<std::uint32_t>(request.num_sge) > capacities_.max_send_sge)
    return EINVAL;
  if ((request.send_flags & IBV_SEND_INLINE) != 0 &&
      (!may_be_inline(request.opcode) || bytes_of(request) > capacities_.max_inline_data)) {
    return EINVAL;
  }
  if (sends_.full(batch_) || faults().post_send_enomem.strikes()) return ENOMEM;
  return 0;
}

int QueuePair::post_send(ibv_send_wr* request, ibv_send_wr** bad) {
  const std::lock_guard guard(mutex_);
  int result = 0;
  for (; request != nullptr; request = request->next) {
    result = check_send(*request);
    if (result != 0) {
      *bad = request;
      break;
    }
    SendRequest& place = sends_.place(0);
    fill(place, *request);
    if ((request->send_flags & IBV_SEND_INLINE) != 0) {
      std::byte* to = sends_.inline_of(place.position);
      for (int index = 0; index < request->num_sge; ++index) {
        const auto& piece = request->sg_list[index];
        if (piece.length == 0) continue;
        std::memcpy(to + place.inline_bytes, reinterpret_cast<const void*>(piece.addr), piece.length);
        place.inline_bytes += piece.length;
      }
    } else {
      std::copy_n(request->sg_list, request->num_sge, sends_.segments_of(place.position));
    }
    sends_.post(1);
    break_by_plan();
  }
  if (waiting_ == Waiting::no || state() == IBV_QPS_ERR) run();
  return result;
}

void QueuePair::break_by_plan() {
  if (faults().fatal.strikes()) context_.break_down();
  if (faults().port_down.strikes()) context_.take_port_down(faults().plan.port_up_ms);
  if (faults().lost.strikes()) faults().is_lost.store(true);
}

int QueuePair::post_receive(ibv_recv_wr* request, ibv_recv_wr** bad) {
  if (qp_base.srq != nullptr || state() == IBV_QPS_RESET) {
    *bad = request;
    return EINVAL;
  }
  int result = 0;
  {
    const std::lock_guard guard(receive_mutex_);
    ReceiveRing ring(adapter_.segment(), receives_offset_);
    for (; request != nullptr; request = request->next) {
      const bool full = capacities_.max_recv_wr == 0 || ring.full();
      result = check_receive(*request, capacities_.max_recv_sge, full);
      if (result != 0) {
        *bad = request;
        break;
      }
      ring.add(*request);
    }
  }
  if (shared_->peer_waits.load() != 0) wake_waiting_peer();
  if (state() == IBV_QPS_ERR) {
    const std::lock_guard guard(mutex_);
    flushed_ = false;
    run();
  }
  return result;
}

}  // namespace fakeverbs
