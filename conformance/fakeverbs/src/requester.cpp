// The send queue at work: one request after the other, in order, until one has to wait or fails.
#include <algorithm>
#include <array>

#include "queue_pair.hpp"

namespace fakeverbs {
namespace {

using std::chrono::microseconds;

// How long a receiver that is not ready asks to be left alone, by the value of min_rnr_timer.
microseconds receiver_pause(std::uint32_t timer) {
  constexpr std::array<std::uint32_t, 32> table{655360, 10,    20,    30,     40,     60,     80,     120,
                                                160,    240,   320,   480,    640,    960,    1280,   1920,
                                                2560,   3840,  5120,  7680,   10240,  15360,  20480,  30720,
                                                40960,  61440, 81920, 122880, 163840, 245760, 327680, 491520};
  return microseconds(table[timer % table.size()]);
}

// Until a requester that hears nothing gives up: retries + 1 times 4.096 us * 2^timeout; a timeout of 0 waits
// for ever.
Clock::duration patience(const ibv_qp_attr& attributes) {
  if (attributes.timeout == 0) return std::chrono::hours(24 * 365);
  return std::chrono::nanoseconds((std::int64_t{4096} << attributes.timeout) * (attributes.retry_cnt + 1));
}

constexpr std::uint8_t retry_for_ever = 7;

std::uint32_t completed_opcode(std::uint32_t opcode) {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return IBV_WC_RDMA_WRITE;
    case IBV_WR_RDMA_READ:
      return IBV_WC_RDMA_READ;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return IBV_WC_COMP_SWAP;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return IBV_WC_FETCH_ADD;
    default:
      return IBV_WC_SEND;
  }
}

}  // namespace

void QueuePair::run() {
  while (!sends_.idle()) {
    const SendRequest& request = sends_.next();
    if (state() == IBV_QPS_ERR) {
      complete(request, IBV_WC_WR_FLUSH_ERR, 0);
      sends_.advance();
    } else if (settings().null_mode) {
      complete(request, IBV_WC_SUCCESS, 0);
      sends_.advance();
    } else if (!settle(request, execute(request))) {
      return;
    }
  }
  if (state() == IBV_QPS_ERR) flush_receives();
}

// True when the next request's turn has come.
bool QueuePair::settle(const SendRequest& request, const Outcome& outcome) {
  if (outcome.kind == Outcome::done) {
    waiting_ = Waiting::no;
    complete(request, outcome.status, outcome.bytes);
    sends_.advance();
    if (outcome.status != IBV_WC_SUCCESS) fail();
    return true;
  }
  const auto now = Clock::now();
  if (outcome.kind == Outcome::receiver_not_ready) {
    const bool first = waiting_ != Waiting::for_receive;
    if (first) not_ready_left_ = attributes_.rnr_retry;
    if ((first || now >= next_try_) && attributes_.rnr_retry != retry_for_ever) {
      if (not_ready_left_ == 0) return settle(request, {Outcome::done, IBV_WC_RNR_RETRY_EXC_ERR});
      --not_ready_left_;
    }
    if (first || now >= next_try_) next_try_ = now + receiver_pause(outcome.bytes);
    waiting_ = Waiting::for_receive;
  } else {
    constexpr microseconds shortest(200);
    constexpr microseconds longest(20'000);
    if (waiting_ != Waiting::for_answer) {
      deadline_ = now + patience(attributes_);
      pause_ = shortest;
    } else if (now >= deadline_) {
      return settle(request, {Outcome::done, IBV_WC_RETRY_EXC_ERR});
    }
    next_try_ = std::min(now + pause_, deadline_);
    if (outcome.kind == Outcome::no_answer) pause_ = std::min<Clock::duration>(pause_ * 2, longest);
    waiting_ = Waiting::for_answer;
  }
  adapter_.wake_at(next_try_);
  return false;
}

void QueuePair::complete(const SendRequest& request, ibv_wc_status status, std::uint32_t bytes) {
  if (status == IBV_WC_SUCCESS && !signal_all_ && (request.flags & IBV_SEND_SIGNALED) == 0) return;
  deliver(adapter_, adapter_.segment(), send_queue_->offset(),
          {.wr_id = request.wr_id,
           .send_position = request.position + 1,
           .qp_num = qp_base.qp_num,
           .status = status,
           .opcode = completed_opcode(request.opcode),
           .byte_len = bytes});
}

// The device thread does the rest if the caller does not come by `run` again.
void QueuePair::fail() {
  shared_->state.store(IBV_QPS_ERR);
  shared_->attention.store(1);
  flushed_ = false;
  waiting_ = Waiting::no;
}

void QueuePair::flush_receives() {
  if (flushed_) return;
  // A peer in the middle of a message sees the error before its next one.
  if (!shared_->lock.try_lock(adapter_.slot())) {
    shared_->attention.store(1);
    adapter_.wake_at(Clock::now() + microseconds(100));
    return;
  }
  const auto flush = [this](std::uint64_t wr_id) {
    deliver(adapter_, adapter_.segment(), receive_queue_->offset(),
            {.wr_id = wr_id, .qp_num = qp_base.qp_num, .status = IBV_WC_WR_FLUSH_ERR, .opcode = IBV_WC_RECV});
  };
  flushed_ = true;
  if (shared_->taken.exchange(0) != 0) flush(shared_->taken_wr_id);
  if (receives_offset_ != 0) {
    const ReceiveRing ring(adapter_.segment(), receives_offset_);
    Receive receive;
    while (ring.peek(receive)) {
      if (ring.take(receive)) flush(receive.wr_id);
    }
  }
  shared_->lock.unlock();
  // The last of a shared queue's receives that this queue pair will use is done with.
  if (receives_offset_ == 0 && !std::exchange(last_told_, true)) {
    context_.raise(IBV_EVENT_QP_LAST_WQE_REACHED, qp_base.qp_num);
  }
}

}  // namespace fakeverbs
