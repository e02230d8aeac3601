// The states of a queue pair, and which attributes each step needs and allows.
#include <algorithm>
#include <array>
#include <cerrno>

#include "faults.hpp"
#include "queue_pair.hpp"

namespace fakeverbs {
namespace {

struct Step {
  ibv_qp_state from;
  ibv_qp_state to;
  int needed;
  int allowed;  // beyond the needed ones
};

constexpr std::array steps{
    Step{IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
    Step{IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
    Step{IBV_QPS_INIT, IBV_QPS_RTR,
         IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
             IBV_QP_MIN_RNR_TIMER,
         IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    Step{IBV_QPS_RTR, IBV_QPS_RTS,
         IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
         IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER |
             IBV_QP_PATH_MIG_STATE},
    Step{IBV_QPS_RTS, IBV_QPS_RTS, 0,
         IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE |
             IBV_QP_MIN_RNR_TIMER}};

bool step_is_ok(ibv_qp_state from, ibv_qp_state to, int mask) {
  mask &= ~IBV_QP_STATE;
  if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) return mask == 0;
  const auto* const step = std::find_if(steps.begin(), steps.end(),
                                        [&](const Step& each) { return each.from == from && each.to == to; });
  return step != steps.end() && (mask & step->needed) == step->needed &&
         (mask & ~(step->needed | step->allowed)) == 0;
}

}  // namespace

int QueuePair::check_modification(const ibv_qp_attr& attributes, int mask, ibv_qp_state to) const {
  if ((mask & IBV_QP_CUR_STATE) != 0 && attributes.cur_qp_state != state()) return EINVAL;
  if (!step_is_ok(state(), to, mask)) return EINVAL;
  if ((mask & IBV_QP_PORT) != 0 && attributes.port_num != 1) return EINVAL;
  if ((mask & IBV_QP_PKEY_INDEX) != 0 && attributes.pkey_index != 0) return EINVAL;
  const auto& limits = faults().plan.limits;
  if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) != 0 && attributes.max_dest_rd_atomic > limits.reads) return EINVAL;
  if ((mask & IBV_QP_MAX_QP_RD_ATOMIC) != 0 && attributes.max_rd_atomic > limits.reads) return EINVAL;
  if ((mask & IBV_QP_MIN_RNR_TIMER) != 0 && attributes.min_rnr_timer > 31) return EINVAL;
  if ((mask & IBV_QP_TIMEOUT) != 0 && attributes.timeout > 31) return EINVAL;
  if ((mask & IBV_QP_RETRY_CNT) != 0 && attributes.retry_cnt > 7) return EINVAL;
  if ((mask & IBV_QP_RNR_RETRY) != 0 && attributes.rnr_retry > 7) return EINVAL;
  if ((mask & IBV_QP_DEST_QPN) != 0 && attributes.dest_qp_num > 0xffffff) return EINVAL;
  if ((mask & IBV_QP_PATH_MTU) != 0) {
    ibv_port_attr port{};
    describe(context_, port);
    if (attributes.path_mtu < IBV_MTU_256 || attributes.path_mtu > port.active_mtu) return EINVAL;
  }
  if ((mask & IBV_QP_AV) != 0) {
    // Over Ethernet every address is a global one.
    const auto& path = attributes.ah_attr;
    if (path.is_global == 0 || path.port_num != 1) return EINVAL;
    if (path.grh.sgid_index >= context_.device().settings->gids.size()) return EINVAL;
  }
  return 0;
}

int QueuePair::modify(const ibv_qp_attr& attributes, int mask) {
  const std::lock_guard guard(mutex_);
  const ibv_qp_state to = (mask & IBV_QP_STATE) != 0 ? attributes.qp_state : state();
  if (const int error = check_modification(attributes, mask, to); error != 0) return error;
  if (context_.fatal()) return EIO;
  shared_->lock.lock(adapter_.slot());
  // A peer may have put it into the error state since the check.
  if (state() == IBV_QPS_ERR && to != IBV_QPS_RESET && to != IBV_QPS_ERR) {
    shared_->lock.unlock();
    return EINVAL;
  }
  apply(attributes, mask);
  if (to == IBV_QPS_RESET) reset();
  shared_->state.store(to);
  shared_->lock.unlock();
  qp_base.state = to;
  attributes_.qp_state = to;
  enter(to);
  return 0;
}

void QueuePair::apply(const ibv_qp_attr& from, int mask) {
  ibv_qp_attr& to = attributes_;
  if ((mask & IBV_QP_PKEY_INDEX) != 0) to.pkey_index = from.pkey_index;
  if ((mask & IBV_QP_PORT) != 0) to.port_num = from.port_num;
  if ((mask & IBV_QP_ACCESS_FLAGS) != 0) to.qp_access_flags = shared_->access = from.qp_access_flags;
  if ((mask & IBV_QP_PATH_MTU) != 0) to.path_mtu = from.path_mtu;
  if ((mask & IBV_QP_DEST_QPN) != 0) to.dest_qp_num = shared_->peer_number = from.dest_qp_num;
  // A sequence number has 24 bits; what is above them is not there.
  constexpr std::uint32_t sequence_bits = 0xffffff;
  if ((mask & IBV_QP_RQ_PSN) != 0) to.rq_psn = shared_->expected_sequence = from.rq_psn & sequence_bits;
  if ((mask & IBV_QP_SQ_PSN) != 0) to.sq_psn = from.sq_psn & sequence_bits;
  if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) != 0) {
    shared_->reads_allowed = to.max_dest_rd_atomic = from.max_dest_rd_atomic;
  }
  if ((mask & IBV_QP_MAX_QP_RD_ATOMIC) != 0) to.max_rd_atomic = from.max_rd_atomic;
  if ((mask & IBV_QP_MIN_RNR_TIMER) != 0) shared_->receiver_timer = to.min_rnr_timer = from.min_rnr_timer;
  if ((mask & IBV_QP_TIMEOUT) != 0) to.timeout = from.timeout;
  if ((mask & IBV_QP_RETRY_CNT) != 0) to.retry_cnt = from.retry_cnt;
  if ((mask & IBV_QP_RNR_RETRY) != 0) to.rnr_retry = from.rnr_retry;
  if ((mask & IBV_QP_AV) != 0) {
    to.ah_attr = from.ah_attr;
    const auto& gid = context_.device().settings->gids[from.ah_attr.grh.sgid_index];
    std::copy(std::begin(gid.raw), std::end(gid.raw), shared_->own_gid.begin());
  }
}

void QueuePair::reset() {
  sends_.clear();
  batch_ = 0;
  last_told_ = false;
  waiting_ = Waiting::no;
  flushed_ = false;
  peer_ = nullptr;
  peer_segment_.reset();
  static_cast<void>(deferred_.take());
  shared_->broken_by.store(0);
  shared_->taken.store(0);
  shared_->access = 0;
  attributes_ = {};
  if (receives_offset_ != 0) ReceiveRing(adapter_.segment(), receives_offset_).clear();
}

void QueuePair::enter(ibv_qp_state to) {
  if (to == IBV_QPS_ERR) run();
  if (to == IBV_QPS_RTR) {
    // Holding on to the peer's segment makes waking it cheap; that it is not there yet is no mistake.
    peer_segment_ = adapter_.segment_of(attributes_.dest_qp_num);
    wake_waiting_peer();
  }
}

}  // namespace fakeverbs
