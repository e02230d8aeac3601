// Protection domains, regions, queues and queue pairs.
#include <cerrno>
#include <mutex>

#include "completion_queue.hpp"
#include "context.hpp"
#include "entry_points.hpp"
#include "faults.hpp"
#include "mapped_memory.hpp"
#include "queue_pair.hpp"
#include "receive_pool.hpp"

using namespace fakeverbs;

FAKEVERBS_ENTRY ibv_pd* ibv_alloc_pd(ibv_context* context) {
  auto* const domain = new Domain{};
  domain->context = context;
  domain->owner = &Context::of(context);
  domain->number = domain->owner->adapter().next_domain();
  domain->handle = domain->number;
  return domain;
}

FAKEVERBS_ENTRY int ibv_dealloc_pd(ibv_pd* domain) {
  auto* const ours = static_cast<Domain*>(domain);
  if (ours->users.load() != 0) return EBUSY;
  delete ours;
  return 0;
}

namespace {

ibv_mr* fail_registration(int error) {
  errno = error;
  return nullptr;
}

ibv_mr* register_region(ibv_pd* domain, void* address, std::size_t length, std::uint64_t virtual_address,
                        unsigned access) {
  constexpr unsigned known = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                             IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_OPTIONAL_RANGE;
  auto* const ours = static_cast<Domain*>(domain);
  Context& context = *ours->owner;
  if ((access & ~known) != 0) return fail_registration(EOPNOTSUPP);
  const bool written_remotely = (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) != 0;
  if (length == 0 || (written_remotely && (access & IBV_ACCESS_LOCAL_WRITE) == 0))
    return fail_registration(EINVAL);
  if (context.fatal()) return fail_registration(EIO);
  if (faults().register_enomem.strikes()) return fail_registration(ENOMEM);
  if (!is_mapped(address, length, (access & IBV_ACCESS_LOCAL_WRITE) != 0)) return fail_registration(EFAULT);
  const std::uint32_t key =
      context.adapter().regions().add({.address = reinterpret_cast<std::uint64_t>(address),
                                       .virtual_address = virtual_address,
                                       .length = length,
                                       .access = access,
                                       .domain = ours->number,
                                       .device = context.device().index});
  if (key == 0) return fail_registration(ENOMEM);
  ours->users.fetch_add(1);
  return new ibv_mr{.context = domain->context,
                    .pd = domain,
                    .addr = address,
                    .length = length,
                    .handle = key,
                    .lkey = key,
                    .rkey = key};
}

}  // namespace

FAKEVERBS_ENTRY ibv_mr* ibv_reg_mr(ibv_pd* domain, void* address, std::size_t length, int access) {
  return register_region(domain, address, length, reinterpret_cast<std::uint64_t>(address),
                         static_cast<unsigned>(access));
}

FAKEVERBS_ENTRY ibv_mr* ibv_reg_mr_iova(ibv_pd* domain, void* address, std::size_t length, std::uint64_t iova,
                                        int access) {
  return register_region(domain, address, length, iova, static_cast<unsigned>(access));
}

FAKEVERBS_ENTRY ibv_mr* ibv_reg_mr_iova2(ibv_pd* domain, void* address, std::size_t length,
                                         std::uint64_t iova, unsigned access) {
  return register_region(domain, address, length, iova, access);
}

FAKEVERBS_ENTRY ibv_mr* ibv_reg_dmabuf_mr(ibv_pd*, std::uint64_t, std::size_t, std::uint64_t, int, int) {
  return fail_registration(EOPNOTSUPP);
}

FAKEVERBS_ENTRY int ibv_rereg_mr(ibv_mr*, int, ibv_pd*, void*, std::size_t, int) {
  errno = EOPNOTSUPP;
  return IBV_REREG_MR_ERR_INPUT;
}

// For tests: what this process has on its devices. It opens them if nothing else has.
FAKEVERBS_ENTRY std::uint64_t fakeverbs_live_objects() { return Adapter::acquire()->live_objects(); }

FAKEVERBS_ENTRY int ibv_dereg_mr(ibv_mr* region) {
  auto* const domain = static_cast<Domain*>(region->pd);
  Adapter& adapter = domain->owner->adapter();
  adapter.regions().begin_removal(region->lkey);
  // What was under way when the region began to die is over once every queue pair has been passed by.
  adapter.for_each_queue_pair([](QueuePair& pair) { pair.wait_for_accesses(); });
  adapter.regions().finish_removal(region->lkey);
  domain->users.fetch_sub(1);
  delete region;
  return 0;
}

FAKEVERBS_ENTRY ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  return create_channel(Context::of(context));
}

FAKEVERBS_ENTRY int ibv_destroy_comp_channel(ibv_comp_channel* channel) { return destroy_channel(channel); }

FAKEVERBS_ENTRY int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** queue, void** queue_context) {
  return next_completion_event(channel, queue, queue_context);
}

FAKEVERBS_ENTRY ibv_cq* ibv_create_cq(ibv_context* context, int entries, void* queue_context,
                                      ibv_comp_channel* channel, int vector) {
  if (entries <= 0 || vector < 0 || vector >= context->num_comp_vectors) {
    errno = EINVAL;
    return nullptr;
  }
  CompletionQueue* const queue = CompletionQueue::create({.context = &Context::of(context),
                                                          .entries = static_cast<std::uint32_t>(entries),
                                                          .cq_context = queue_context,
                                                          .channel = channel,
                                                          .wanted_fields = 0});
  return queue == nullptr ? nullptr : queue->plain();
}

FAKEVERBS_ENTRY int ibv_resize_cq(ibv_cq* queue, int entries) {
  // Growing is not modelled; what already fits needs nothing done.
  return entries > 0 && entries <= queue->cqe ? 0 : EOPNOTSUPP;
}

FAKEVERBS_ENTRY int ibv_destroy_cq(ibv_cq* queue) {
  return destroy_completion_queue(CompletionQueue::of(queue));
}

FAKEVERBS_ENTRY ibv_srq* ibv_create_srq(ibv_pd* domain, ibv_srq_init_attr* attributes) {
  return ReceivePool::create(domain, *attributes);
}

FAKEVERBS_ENTRY int ibv_modify_srq(ibv_srq* pool, ibv_srq_attr* attributes, int mask) {
  return ReceivePool::of(pool).modify(*attributes, mask);
}

FAKEVERBS_ENTRY int ibv_query_srq(ibv_srq* pool, ibv_srq_attr* attributes) {
  ReceivePool::of(pool).query(*attributes);
  return 0;
}

FAKEVERBS_ENTRY int ibv_destroy_srq(ibv_srq* pool) { return destroy_receive_pool(ReceivePool::of(pool)); }

FAKEVERBS_ENTRY ibv_qp* ibv_create_qp(ibv_pd* domain, ibv_qp_init_attr* attributes) {
  ibv_qp_init_attr_ex full{};
  full.qp_context = attributes->qp_context;
  full.send_cq = attributes->send_cq;
  full.recv_cq = attributes->recv_cq;
  full.srq = attributes->srq;
  full.cap = attributes->cap;
  full.qp_type = attributes->qp_type;
  full.sq_sig_all = attributes->sq_sig_all;
  full.comp_mask = IBV_QP_INIT_ATTR_PD;
  full.pd = domain;
  QueuePair* const pair = QueuePair::create(Context::of(domain->context), full);
  return pair == nullptr ? nullptr : &pair->qp_base;
}

FAKEVERBS_ENTRY ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* pair) {
  QueuePair& ours = QueuePair::of(pair);
  return ours.can_post_extended() ? &ours : nullptr;
}

FAKEVERBS_ENTRY int ibv_modify_qp(ibv_qp* pair, ibv_qp_attr* attributes, int mask) {
  return QueuePair::of(pair).modify(*attributes, mask);
}

FAKEVERBS_ENTRY int ibv_query_qp(ibv_qp* pair, ibv_qp_attr* attributes, int /*mask*/,
                                 ibv_qp_init_attr* initial) {
  return QueuePair::of(pair).query(*attributes, *initial);
}

FAKEVERBS_ENTRY int ibv_query_qp_data_in_order(ibv_qp*, ibv_wr_opcode, std::uint32_t) { return 0; }

FAKEVERBS_ENTRY int ibv_destroy_qp(ibv_qp* pair) { return destroy_queue_pair(QueuePair::of(pair)); }

FAKEVERBS_ENTRY ibv_ah* ibv_create_ah(ibv_pd*, ibv_ah_attr*) {
  errno = EOPNOTSUPP;
  return nullptr;
}

FAKEVERBS_ENTRY ibv_ah* ibv_create_ah_from_wc(ibv_pd*, ibv_wc*, ibv_grh*, std::uint8_t) {
  errno = EOPNOTSUPP;
  return nullptr;
}

FAKEVERBS_ENTRY int ibv_destroy_ah(ibv_ah*) { return EOPNOTSUPP; }

FAKEVERBS_ENTRY int ibv_attach_mcast(ibv_qp*, const ibv_gid*, std::uint16_t) { return EOPNOTSUPP; }

FAKEVERBS_ENTRY int ibv_detach_mcast(ibv_qp*, const ibv_gid*, std::uint16_t) { return EOPNOTSUPP; }

FAKEVERBS_ENTRY int ibv_query_ece(ibv_qp*, ibv_ece*) { return EOPNOTSUPP; }

FAKEVERBS_ENTRY int ibv_set_ece(ibv_qp*, ibv_ece*) { return EOPNOTSUPP; }

FAKEVERBS_ENTRY ibv_context* ibv_import_device(int) {
  errno = EOPNOTSUPP;
  return nullptr;
}
