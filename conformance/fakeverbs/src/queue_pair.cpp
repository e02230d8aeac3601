#include "queue_pair.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "faults.hpp"

namespace fakeverbs {
namespace {

bool check_capacities(const ibv_qp_cap& wanted, const Limits& limits) {
  return wanted.max_send_wr <= limits.queue_entries && wanted.max_recv_wr <= limits.queue_entries &&
         wanted.max_send_sge <= limits.segments && wanted.max_recv_sge <= limits.segments &&
         wanted.max_inline_data <= limits.inline_bytes;
}

}  // namespace

QueuePair* QueuePair::create(Context& context, ibv_qp_init_attr_ex& attributes) {
  errno = EINVAL;
  if (attributes.pd == nullptr || attributes.send_cq == nullptr || attributes.recv_cq == nullptr)
    return nullptr;
  if (!check_capacities(attributes.cap, faults().plan.limits)) return nullptr;
  if (attributes.qp_type != IBV_QPT_RC) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  if (context.fatal()) {
    errno = EIO;
    return nullptr;
  }
  errno = ENOMEM;
  if (faults().create_enomem.strikes()) return nullptr;
  Adapter& adapter = context.adapter();
  const std::uint32_t number = adapter.reserve_number();
  if (number == 0) return nullptr;
  auto pair = std::unique_ptr<QueuePair>(
      new QueuePair(context, adapter.segment().queue_pair(number % max_queue_pairs)));
  pair->qp_base.qp_num = number;
  if (!pair->allocate(attributes)) {
    errno = ENOMEM;
    return nullptr;
  }
  // From here on the device thread sees it.
  adapter.add(*pair);
  return pair.release();
}

QueuePair::QueuePair(Context& context, SharedQueuePair& shared)
    : ibv_qp_ex{}, context_(context), adapter_(context.adapter()), shared_(&shared) {}

bool QueuePair::allocate(const ibv_qp_init_attr_ex& attributes) {
  capacities_ = attributes.cap;
  if (attributes.srq != nullptr) capacities_.max_recv_wr = capacities_.max_recv_sge = 0;
  qp_base.context = &context_.context;
  qp_base.qp_context = attributes.qp_context;
  qp_base.pd = attributes.pd;
  qp_base.send_cq = attributes.send_cq;
  qp_base.recv_cq = attributes.recv_cq;
  qp_base.srq = attributes.srq;
  qp_base.handle = qp_base.qp_num;
  qp_base.state = IBV_QPS_RESET;
  qp_base.qp_type = IBV_QPT_RC;
  ::pthread_mutex_init(&qp_base.mutex, nullptr);
  ::pthread_cond_init(&qp_base.cond, nullptr);
  signal_all_ = attributes.sq_sig_all != 0;
  send_queue_ = &CompletionQueue::of(attributes.send_cq);
  receive_queue_ = &CompletionQueue::of(attributes.recv_cq);
  sends_.prepare(capacities_.max_send_wr, capacities_.max_send_sge, capacities_.max_inline_data);

  std::uint64_t receives = attributes.srq != nullptr ? ReceivePool::of(attributes.srq).offset() : 0;
  if (receives == 0) {
    receives_bytes_ = page_bytes + ReceiveRing::bytes_for(capacities_.max_recv_wr, capacities_.max_recv_sge);
    receives = receives_offset_ = adapter_.arena().allocate(receives_bytes_);
    if (receives != 0) {
      ReceiveRing(adapter_.segment(), receives)
          .prepare(receives + page_bytes, std::max(1u, capacities_.max_recv_wr), capacities_.max_recv_sge);
    }
  }
  std::atomic_ref(send_queue_->users).fetch_add(1);
  std::atomic_ref(receive_queue_->users).fetch_add(1);
  if (qp_base.srq != nullptr) ReceivePool::of(qp_base.srq).users.fetch_add(1);
  auto* const domain = static_cast<Domain*>(qp_base.pd);
  domain->users.fetch_add(1);

  shared_->lock.lock(adapter_.slot());
  shared_->state.store(IBV_QPS_RESET);
  shared_->attention.store(0);
  shared_->peer_waits.store(0);
  shared_->broken_by.store(0);
  shared_->taken.store(0);
  shared_->device = context_.device().index;
  shared_->domain = domain->number;
  shared_->access = 0;
  shared_->uses_shared_queue = qp_base.srq != nullptr ? 1 : 0;
  shared_->receive_queue = receives;
  shared_->completion_queue = receive_queue_->offset();
  shared_->lock.unlock();
  attributes_.qp_state = IBV_QPS_RESET;

  if ((attributes.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0) {
    extended_ = true;
    fill_extended();
  }
  return receives != 0;
}

QueuePair::~QueuePair() {
  adapter_.remove(*this);
  {
    // From here on no peer finds it.
    const std::lock_guard guard(mutex_);
    place_deferred_alone();
    shared_->lock.lock(adapter_.slot());
    shared_->state.store(IBV_QPS_RESET);
    shared_->number.store(0);
    shared_->lock.unlock();
  }
  if (send_queue_ != nullptr) {
    // A poll that found this queue pair before is over.
    send_queue_->wait_for_pollers();
    receive_queue_->wait_for_pollers();
    std::atomic_ref(send_queue_->users).fetch_sub(1);
    std::atomic_ref(receive_queue_->users).fetch_sub(1);
    if (qp_base.srq != nullptr) ReceivePool::of(qp_base.srq).users.fetch_sub(1);
    static_cast<Domain*>(qp_base.pd)->users.fetch_sub(1);
    ::pthread_cond_destroy(&qp_base.cond);
    ::pthread_mutex_destroy(&qp_base.mutex);
  }
  if (receives_offset_ != 0) adapter_.arena().release(receives_offset_, receives_bytes_);
}

int QueuePair::query(ibv_qp_attr& attributes, ibv_qp_init_attr& initial) {
  const std::lock_guard guard(mutex_);
  attributes = attributes_;
  attributes.qp_state = attributes.cur_qp_state = state();
  attributes.cap = capacities_;
  attributes.path_mig_state = IBV_MIG_MIGRATED;
  initial = {.qp_context = qp_base.qp_context,
             .send_cq = qp_base.send_cq,
             .recv_cq = qp_base.recv_cq,
             .srq = qp_base.srq,
             .cap = capacities_,
             .qp_type = IBV_QPT_RC,
             .sq_sig_all = signal_all_ ? 1 : 0};
  qp_base.state = attributes.qp_state;
  return 0;
}

void QueuePair::look(Clock::time_point now) {
  const std::lock_guard guard(mutex_);
  const bool called = shared_->attention.exchange(0) != 0;
  const bool broken = context_.fatal() || send_queue_->shared().overrun.load() != 0 ||
                      receive_queue_->shared().overrun.load() != 0;
  if (broken && state() != IBV_QPS_ERR && state() != IBV_QPS_RESET) {
    if (!context_.fatal()) context_.raise(IBV_EVENT_QP_FATAL, qp_base.qp_num);
    fail();
  }
  if (state() == IBV_QPS_ERR) {
    if (const std::uint32_t event = shared_->broken_by.exchange(0); event != 0) {
      context_.raise(static_cast<ibv_event_type>(event - 1), qp_base.qp_num);
    }
    run();
    return;
  }
  if (!deferred_.empty() && now >= deferred_until_) place_deferred_alone();
  if (!deferred_.empty()) adapter_.wake_at(deferred_until_);
  if (waiting_ == Waiting::no) return;
  if (called || now >= next_try_) run();
  if (waiting_ != Waiting::no) adapter_.wake_at(next_try_);
}

void QueuePair::wake_waiting_peer() {
  if (shared_->peer_waits.exchange(0) == 0) return;
  const std::uint32_t number = shared_->peer_number;
  const auto segment = adapter_.segment_of(number);
  if (!segment) return;
  segment->queue_pair(number % max_queue_pairs).attention.store(1);
  segment->ring();
}

void QueuePair::wait_for_accesses() {
  const std::lock_guard guard(mutex_);
  shared_->lock.lock(adapter_.slot());
  shared_->lock.unlock();
}

int QueuePair::prepare_destruction() {
  ::pthread_mutex_lock(&qp_base.mutex);
  while (qp_base.events_completed != async_taken) ::pthread_cond_wait(&qp_base.cond, &qp_base.mutex);
  ::pthread_mutex_unlock(&qp_base.mutex);
  return 0;
}

int destroy_queue_pair(QueuePair& pair) {
  if (faults().plan.destroy_ms != 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(faults().plan.destroy_ms));
  const int result = pair.prepare_destruction();
  if (result == 0) delete &pair;
  return result;
}

}  // namespace fakeverbs
