// ibv_wr_*: requests put together call by call.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "queue_pair.hpp"

namespace fakeverbs {
namespace {

void begin(ibv_qp_ex* pair, ibv_wr_opcode opcode, std::uint32_t key, std::uint64_t address,
           std::uint32_t immediate) {
  SendRequest* const request = QueuePair::of(pair).add_to_batch(opcode);
  if (request == nullptr) return;
  request->key = key;
  request->remote_address = address;
  request->imm_data = immediate;
}

void begin_atomic(ibv_qp_ex* pair, ibv_wr_opcode opcode, std::uint32_t key, std::uint64_t address,
                  std::uint64_t compare_add, std::uint64_t swap) {
  SendRequest* const request = QueuePair::of(pair).add_to_batch(opcode);
  if (request == nullptr) return;
  request->key = key;
  request->remote_address = address;
  request->compare_add = compare_add;
  request->swap = swap;
}

}  // namespace

void QueuePair::start_batch() {
  mutex_.lock();
  batch_ = 0;
  batch_error_ = 0;
}

// The first mistake spoils the batch; complete_batch tells of it.
SendRequest* QueuePair::add_to_batch(ibv_wr_opcode opcode) {
  if (batch_error_ != 0) return nullptr;
  ibv_send_wr request{};
  request.opcode = opcode;
  // Whether it is inline only its data will tell.
  batch_error_ = check_send(request);
  if (batch_error_ != 0) return nullptr;
  SendRequest& place = sends_.place(batch_++);
  const std::uint64_t position = place.position;
  place = {};
  place.position = position;
  place.wr_id = wr_id;
  place.opcode = opcode;
  place.flags = wr_flags & ~static_cast<unsigned>(IBV_SEND_INLINE);
  return &place;
}

void QueuePair::set_batch_segments(const ibv_sge* segments, std::size_t count) {
  if (batch_error_ != 0 || batch_ == 0) return;
  if (count > capacities_.max_send_sge) {
    batch_error_ = EINVAL;
    return;
  }
  SendRequest& place = sends_.place(batch_ - 1);
  place.segments = static_cast<std::uint32_t>(count);
  std::copy_n(segments, count, sends_.segments_of(place.position));
}

void QueuePair::set_batch_inline(const ibv_data_buf* buffers, std::size_t count) {
  if (batch_error_ != 0 || batch_ == 0) return;
  SendRequest& place = sends_.place(batch_ - 1);
  std::byte* const to = sends_.inline_of(place.position);
  place.flags |= IBV_SEND_INLINE;
  for (std::size_t index = 0; index < count; ++index) {
    if (place.inline_bytes + buffers[index].length > capacities_.max_inline_data) {
      batch_error_ = EINVAL;
      return;
    }
    if (buffers[index].length == 0) continue;
    std::memcpy(to + place.inline_bytes, buffers[index].addr, buffers[index].length);
    place.inline_bytes += static_cast<std::uint32_t>(buffers[index].length);
  }
}

int QueuePair::complete_batch() {
  const int result = batch_error_;
  if (result == 0) {
    sends_.post(batch_);
    for (std::uint64_t posted = 0; posted < batch_; ++posted) break_by_plan();
    batch_ = 0;
    if (waiting_ == Waiting::no || state() == IBV_QPS_ERR) run();
  }
  batch_ = 0;
  mutex_.unlock();
  return result;
}

void QueuePair::abort_batch() {
  batch_ = 0;
  mutex_.unlock();
}

void QueuePair::fill_extended() {
  wr_start = [](ibv_qp_ex* pair) { of(pair).start_batch(); };
  wr_complete = [](ibv_qp_ex* pair) { return of(pair).complete_batch(); };
  wr_abort = [](ibv_qp_ex* pair) { of(pair).abort_batch(); };
  wr_send = [](ibv_qp_ex* pair) { begin(pair, IBV_WR_SEND, 0, 0, 0); };
  wr_send_imm = [](ibv_qp_ex* pair, __be32 immediate) { begin(pair, IBV_WR_SEND_WITH_IMM, 0, 0, immediate); };
  wr_rdma_write = [](ibv_qp_ex* pair, std::uint32_t key, std::uint64_t address) {
    begin(pair, IBV_WR_RDMA_WRITE, key, address, 0);
  };
  wr_rdma_write_imm = [](ibv_qp_ex* pair, std::uint32_t key, std::uint64_t address, __be32 immediate) {
    begin(pair, IBV_WR_RDMA_WRITE_WITH_IMM, key, address, immediate);
  };
  wr_rdma_read = [](ibv_qp_ex* pair, std::uint32_t key, std::uint64_t address) {
    begin(pair, IBV_WR_RDMA_READ, key, address, 0);
  };
  wr_atomic_cmp_swp = [](ibv_qp_ex* pair, std::uint32_t key, std::uint64_t address, std::uint64_t compare,
                         std::uint64_t swap) {
    begin_atomic(pair, IBV_WR_ATOMIC_CMP_AND_SWP, key, address, compare, swap);
  };
  wr_atomic_fetch_add = [](ibv_qp_ex* pair, std::uint32_t key, std::uint64_t address, std::uint64_t add) {
    begin_atomic(pair, IBV_WR_ATOMIC_FETCH_AND_ADD, key, address, add, 0);
  };
  wr_set_sge = [](ibv_qp_ex* pair, std::uint32_t key, std::uint64_t address, std::uint32_t length) {
    const ibv_sge segment{address, length, key};
    of(pair).set_batch_segments(&segment, 1);
  };
  wr_set_sge_list = [](ibv_qp_ex* pair, std::size_t count, const ibv_sge* segments) {
    of(pair).set_batch_segments(segments, count);
  };
  wr_set_inline_data = [](ibv_qp_ex* pair, void* address, std::size_t length) {
    const ibv_data_buf buffer{address, length};
    of(pair).set_batch_inline(&buffer, 1);
  };
  wr_set_inline_data_list = [](ibv_qp_ex* pair, std::size_t count, const ibv_data_buf* buffers) {
    of(pair).set_batch_inline(buffers, count);
  };
}

}  // namespace fakeverbs
