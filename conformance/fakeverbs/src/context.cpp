#include "context.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "completion_queue.hpp"
#include "faults.hpp"
#include "queue_pair.hpp"
#include "receive_pool.hpp"

namespace fakeverbs {
namespace {

template <class To, class From>
int copy_sized(To* to, const From& from, std::size_t size) {
  std::memset(to, 0, size);
  std::memcpy(to, &from, std::min(size, sizeof from));
  return 0;
}

ibv_qp_init_attr_ex without_unknown(const ibv_qp_init_attr_ex& from) {
  ibv_qp_init_attr_ex to{};
  to.qp_context = from.qp_context;
  to.send_cq = from.send_cq;
  to.recv_cq = from.recv_cq;
  to.srq = from.srq;
  to.cap = from.cap;
  to.qp_type = from.qp_type;
  to.sq_sig_all = from.sq_sig_all;
  to.comp_mask = from.comp_mask;
  to.pd = from.pd;
  to.send_ops_flags = (from.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0 ? from.send_ops_flags : 0;
  return to;
}

ibv_qp* create_queue_pair(ibv_context* context, ibv_qp_init_attr_ex* attributes) {
  constexpr std::uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  constexpr std::uint64_t operations = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                                       IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
                                       IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                                       IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
  auto wanted = without_unknown(*attributes);
  if ((wanted.comp_mask & ~known) != 0 || (wanted.send_ops_flags & ~operations) != 0) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  QueuePair* const pair = QueuePair::create(Context::of(context), wanted);
  return pair == nullptr ? nullptr : &pair->qp_base;
}

ibv_cq_ex* create_extended_queue(ibv_context* context, ibv_cq_init_attr_ex* attributes) {
  constexpr std::uint64_t known = std::uint64_t{IBV_WC_STANDARD_FLAGS} | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
                                  IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
  if ((attributes->wc_flags & ~known) != 0) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  return CompletionQueue::create({.context = &Context::of(context),
                                  .entries = attributes->cqe,
                                  .cq_context = attributes->cq_context,
                                  .channel = attributes->channel,
                                  .wanted_fields = attributes->wc_flags});
}

ibv_srq* create_extended_pool(ibv_context* /*context*/, ibv_srq_init_attr_ex* attributes) {
  if ((attributes->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) != 0 && attributes->srq_type != IBV_SRQT_BASIC) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  if ((attributes->comp_mask & IBV_SRQ_INIT_ATTR_PD) == 0) {
    errno = EINVAL;
    return nullptr;
  }
  return ReceivePool::create(attributes->pd, {attributes->srq_context, attributes->attr});
}

int query_extended(ibv_context* context, const ibv_query_device_ex_input* /*input*/,
                   ibv_device_attr_ex* attributes, std::size_t size) {
  ibv_device_attr_ex full{};
  describe(Context::of(context), full.orig_attr);
  full.phys_port_cnt_ex = 1;
  full.completion_timestamp_mask = UINT64_MAX;
  full.hca_core_clock = 1'000'000;  // kHz: the timestamps are nanoseconds
  return copy_sized(attributes, full, size);
}

}  // namespace

Context::Context(std::shared_ptr<Adapter> adapter, Device& device)
    : verbs_context{}, adapter_(std::move(adapter)), device_(device), channel_(adapter_->next_channel()) {}

Context* Context::open(Device& device) {
  auto adapter = Adapter::acquire();
  if (!adapter) return nullptr;
  auto opened = std::unique_ptr<Context>(new Context(std::move(adapter), device));
  ::pthread_mutex_init(&opened->context.mutex, nullptr);
  const bool good = opened->open_descriptors();
  opened->fill_operations();
  opened->adapter().add(*opened);
  return good ? opened.release() : nullptr;
}

Context::~Context() {
  adapter_->remove(*this);
  if (context.async_fd >= 0) ::close(context.async_fd);
  if (context.cmd_fd >= 0) ::close(context.cmd_fd);
  ::pthread_mutex_destroy(&context.mutex);
}

bool Context::open_descriptors() {
  context.cmd_fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  context.async_fd = open_event_descriptor(settings().network,
                                           {static_cast<std::uint32_t>(adapter_->segment().pid()), channel_});
  return context.cmd_fd >= 0 && context.async_fd >= 0;
}

void Context::fill_operations() {
  context.device = &device_;
  context.num_comp_vectors = 1;
  context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  sz = sizeof(verbs_context);
  auto& operations = context.ops;
  operations.poll_cq = [](ibv_cq* queue, int count, ibv_wc* entries) {
    return CompletionQueue::of(queue).poll(count, entries);
  };
  operations.req_notify_cq = [](ibv_cq* queue, int solicited_only) {
    return CompletionQueue::of(queue).arm(solicited_only != 0);
  };
  operations.post_send = [](ibv_qp* pair, ibv_send_wr* request, ibv_send_wr** bad) {
    return QueuePair::of(pair).post_send(request, bad);
  };
  operations.post_recv = [](ibv_qp* pair, ibv_recv_wr* request, ibv_recv_wr** bad) {
    return QueuePair::of(pair).post_receive(request, bad);
  };
  operations.post_srq_recv = [](ibv_srq* pool, ibv_recv_wr* request, ibv_recv_wr** bad) {
    return ReceivePool::of(pool).post(request, bad);
  };
  operations.alloc_mw = [](ibv_pd*, ibv_mw_type) -> ibv_mw* {
    errno = EOPNOTSUPP;
    return nullptr;
  };
  operations.bind_mw = [](ibv_qp*, ibv_mw*, ibv_mw_bind*) { return EOPNOTSUPP; };
  operations.dealloc_mw = [](ibv_mw*) { return EOPNOTSUPP; };
  query_port = [](ibv_context* of, std::uint8_t port, ibv_port_attr* attributes, std::size_t size) {
    if (port != 1) return EINVAL;
    ibv_port_attr full;
    describe(Context::of(of), full);
    return copy_sized(attributes, full, size);
  };
  query_device_ex = query_extended;
  create_srq_ex = create_extended_pool;
  get_srq_num = [](ibv_srq*, std::uint32_t*) { return EOPNOTSUPP; };
  if (!faults().plan.limits.extended) return;
  create_cq_ex = create_extended_queue;
  create_qp_ex = create_queue_pair;
}

void Context::raise(ibv_event_type type, std::uint32_t handle) {
  const std::lock_guard guard(pending_mutex_);
  pending_.push_back({static_cast<std::uint32_t>(type), handle});
  send_pending();
}

void Context::send_pending() {
  const EventAddress address{static_cast<std::uint32_t>(adapter_->segment().pid()), channel_};
  while (!pending_.empty() && adapter_->events().send(address, pending_.front())) pending_.pop_front();
}

int Context::next_event(Event& event) {
  if (receive_event(context.async_fd, event) != 0) return -1;
  const std::lock_guard guard(pending_mutex_);
  send_pending();
  return 0;
}

void Context::break_down() {
  fatal_.store(true);
  adapter_->wake();
}

void Context::take_port_down(std::uint32_t up_after_ms) {
  if (port_down_.exchange(true)) return;
  if (up_after_ms != 0) {
    const auto up_at = Clock::now() + std::chrono::milliseconds(up_after_ms);
    port_up_at_.store(up_at.time_since_epoch().count());
    adapter_->wake_at(up_at);
  }
  raise(IBV_EVENT_PORT_ERR, 1);
}

void Context::look(Clock::time_point now) {
  if (fatal() && !fatal_told_.exchange(true)) raise(IBV_EVENT_DEVICE_FATAL, 0);
  const std::int64_t up_at = port_up_at_.load();
  if (up_at == 0) return;
  if (now.time_since_epoch().count() < up_at) {
    adapter_->wake_at(Clock::time_point(Clock::duration(up_at)));
    return;
  }
  port_up_at_.store(0);
  port_down_.store(false);
  raise(IBV_EVENT_PORT_ACTIVE, 1);
}

}  // namespace fakeverbs
