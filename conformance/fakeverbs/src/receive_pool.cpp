#include "receive_pool.hpp"

#include <cerrno>

#include "faults.hpp"
#include "queue_pair.hpp"

namespace fakeverbs {

int check_receive(const ibv_recv_wr& request, std::uint32_t max_segments, bool full) {
  if (full || faults().post_receive_enomem.strikes()) return ENOMEM;
  if (request.num_sge < 0 || static_cast<std::uint32_t>(request.num_sge) > max_segments) return EINVAL;
  return 0;
}

ReceivePool* ReceivePool::create(ibv_pd* domain, const ibv_srq_init_attr& attributes) {
  Context& context = Context::of(domain->context);
  const auto& limits = faults().plan.limits;
  if (attributes.attr.max_wr == 0 || attributes.attr.max_wr > limits.queue_entries ||
      attributes.attr.max_sge > limits.segments) {
    errno = EINVAL;
    return nullptr;
  }
  const std::size_t bytes =
      page_bytes + ReceiveRing::bytes_for(attributes.attr.max_wr, attributes.attr.max_sge);
  const std::uint64_t offset =
      faults().create_enomem.strikes() ? 0 : context.adapter().arena().allocate(bytes);
  if (offset == 0) {
    errno = ENOMEM;
    return nullptr;
  }
  auto* const pool = new ReceivePool(context, offset, bytes);
  pool->ring_.prepare(offset + page_bytes, attributes.attr.max_wr, attributes.attr.max_sge);
  pool->ring_.shared().limit.store(attributes.attr.srq_limit);
  pool->max_segments_ = attributes.attr.max_sge;
  pool->context = &context.context;
  pool->srq_context = attributes.srq_context;
  pool->pd = domain;
  ::pthread_mutex_init(&pool->mutex, nullptr);
  ::pthread_cond_init(&pool->cond, nullptr);
  static_cast<Domain*>(domain)->users.fetch_add(1);
  pool->handle = context.adapter().add(*pool);
  return pool;
}

ReceivePool::ReceivePool(Context& context, std::uint64_t offset, std::size_t bytes)
    : ibv_srq{},
      context_(context),
      offset_(offset),
      bytes_(bytes),
      ring_(context.adapter().segment(), offset) {}

ReceivePool::~ReceivePool() {
  ::pthread_cond_destroy(&cond);
  ::pthread_mutex_destroy(&mutex);
  static_cast<Domain*>(pd)->users.fetch_sub(1);
  context_.adapter().arena().release(offset_, bytes_);
}

int ReceivePool::post(ibv_recv_wr* request, ibv_recv_wr** bad) {
  int result = 0;
  {
    const std::lock_guard guard(mutex_);
    for (; request != nullptr; request = request->next) {
      result = check_receive(*request, max_segments_, ring_.full());
      if (result != 0) {
        *bad = request;
        break;
      }
      ring_.add(*request);
    }
  }
  if (ring_.shared().waited.exchange(0) != 0) {
    context_.adapter().for_each_queue_pair([this](QueuePair& pair) {
      if (pair.qp_base.srq == this) pair.wake_waiting_peer();
    });
  }
  return result;
}

int ReceivePool::modify(const ibv_srq_attr& attributes, int mask) {
  if ((mask & IBV_SRQ_MAX_WR) != 0) return EOPNOTSUPP;
  if ((mask & IBV_SRQ_LIMIT) == 0) return 0;
  if (attributes.srq_limit > ring_.shared().capacity) return EINVAL;
  ring_.shared().limit.store(attributes.srq_limit);
  return 0;
}

void ReceivePool::query(ibv_srq_attr& attributes) const {
  attributes.max_wr = ring_.shared().capacity;
  attributes.max_sge = max_segments_;
  attributes.srq_limit = ring_.shared().limit.load();
}

void ReceivePool::look() {
  if (ring_.shared().limit_reached.exchange(0) != 0) context_.raise(IBV_EVENT_SRQ_LIMIT_REACHED, handle);
}

int destroy_receive_pool(ReceivePool& pool) {
  if (pool.users.load() != 0) return EBUSY;
  pool.owner().adapter().remove(pool);
  ::pthread_mutex_lock(&pool.mutex);
  while (pool.events_completed != pool.async_taken) ::pthread_cond_wait(&pool.cond, &pool.mutex);
  ::pthread_mutex_unlock(&pool.mutex);
  delete &pool;
  return 0;
}

}  // namespace fakeverbs
