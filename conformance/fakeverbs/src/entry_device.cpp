// Devices, ports, addresses and asynchronous events.
#include <endian.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "completion_queue.hpp"
#include "context.hpp"
#include "entry_points.hpp"
#include "queue_pair.hpp"
#include "receive_pool.hpp"

using namespace fakeverbs;

FAKEVERBS_ENTRY ibv_device** ibv_get_device_list(int* count) {
  auto** const list = static_cast<ibv_device**>(std::calloc(device_count() + 1, sizeof(void*)));
  if (list == nullptr) return nullptr;
  for (std::size_t index = 0; index < device_count(); ++index) list[index] = &device(index);
  if (count != nullptr) *count = static_cast<int>(device_count());
  return list;
}

FAKEVERBS_ENTRY void ibv_free_device_list(ibv_device** list) { std::free(list); }

FAKEVERBS_ENTRY const char* ibv_get_device_name(ibv_device* device) { return device->name; }

FAKEVERBS_ENTRY __be64 ibv_get_device_guid(ibv_device* device) { return static_cast<Device*>(device)->guid; }

FAKEVERBS_ENTRY int ibv_get_device_index(ibv_device* device) {
  return static_cast<int>(static_cast<Device*>(device)->index);
}

FAKEVERBS_ENTRY ibv_context* ibv_open_device(ibv_device* device) {
  Context* const context = Context::open(*static_cast<Device*>(device));
  return context == nullptr ? nullptr : &context->context;
}

FAKEVERBS_ENTRY int ibv_close_device(ibv_context* context) {
  delete &Context::of(context);
  return 0;
}

FAKEVERBS_ENTRY int ibv_query_device(ibv_context* context, ibv_device_attr* attributes) {
  describe(Context::of(context), *attributes);
  return 0;
}

// Programs built against old headers come here, with a structure that ends before `flags`.
FAKEVERBS_ENTRY int ibv_query_port(ibv_context* context, std::uint8_t port,
                                   _compat_ibv_port_attr* attributes) {
  return Context::of(context).query_port(context, port, reinterpret_cast<ibv_port_attr*>(attributes),
                                         offsetof(ibv_port_attr, flags));
}

FAKEVERBS_ENTRY int ibv_query_gid(ibv_context* context, std::uint8_t port, int index, ibv_gid* gid) {
  const auto& gids = Context::of(context).device().settings->gids;
  if (port != 1 || index < 0 || static_cast<std::size_t>(index) >= gids.size()) {
    errno = EINVAL;
    return -1;
  }
  *gid = gids[static_cast<std::size_t>(index)];
  return 0;
}

namespace {

ibv_gid_entry entry_at(const Context& context, std::uint32_t index) {
  ibv_gid_entry entry{};
  entry.gid = context.device().settings->gids[index];
  entry.gid_index = index;
  entry.port_num = 1;
  entry.gid_type = IBV_GID_TYPE_ROCE_V2;
  entry.ndev_ifindex = 1;
  return entry;
}

}  // namespace

FAKEVERBS_ENTRY int _ibv_query_gid_ex(ibv_context* context, std::uint32_t port, std::uint32_t index,
                                      ibv_gid_entry* entry, std::uint32_t flags, std::size_t size) {
  if (flags != 0 || port != 1) return EINVAL;
  if (index >= Context::of(context).device().settings->gids.size()) return ENODATA;
  const auto found = entry_at(Context::of(context), index);
  std::memcpy(entry, &found, std::min(size, sizeof found));
  return 0;
}

FAKEVERBS_ENTRY ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* entries,
                                             std::size_t max_entries, std::uint32_t flags, std::size_t size) {
  if (flags != 0) return -EINVAL;
  const std::size_t count = std::min(max_entries, Context::of(context).device().settings->gids.size());
  for (std::size_t index = 0; index < count; ++index) {
    const auto found = entry_at(Context::of(context), static_cast<std::uint32_t>(index));
    std::memcpy(reinterpret_cast<char*>(entries) + index * size, &found, std::min(size, sizeof found));
  }
  return static_cast<ssize_t>(count);
}

// Internal to libibverbs, but ibv_devinfo uses it: 1 is RoCE v2 there.
FAKEVERBS_ENTRY int ibv_query_gid_type(ibv_context*, std::uint8_t, unsigned, unsigned* type) {
  *type = 1;
  return 0;
}

FAKEVERBS_ENTRY int ibv_query_pkey(ibv_context*, std::uint8_t port, int index, __be16* key) {
  if (port != 1 || index != 0) {
    errno = EINVAL;
    return -1;
  }
  *key = htobe16(0xffff);
  return 0;
}

FAKEVERBS_ENTRY int ibv_get_pkey_index(ibv_context*, std::uint8_t, __be16 key) {
  return key == htobe16(0xffff) ? 0 : -1;
}

FAKEVERBS_ENTRY int ibv_fork_init() { return 0; }

FAKEVERBS_ENTRY ibv_fork_status ibv_is_fork_initialized() { return IBV_FORK_UNNEEDED; }

namespace {

// Fills in the object an event is about, and counts it until it is acknowledged; false when the object is
// gone.
bool resolve(Context& context, const Event& from, ibv_async_event& to) {
  to.event_type = static_cast<ibv_event_type>(from.type);
  bool found = false;
  const auto taken = [&found](pthread_mutex_t& mutex, std::uint32_t& count) {
    ::pthread_mutex_lock(&mutex);
    ++count;
    ::pthread_mutex_unlock(&mutex);
    found = true;
  };
  switch (to.event_type) {
    case IBV_EVENT_CQ_ERR:
      context.adapter().with_completion_queue(from.handle, [&](CompletionQueue* queue) {
        if (queue == nullptr) return;
        to.element.cq = queue->plain();
        taken(queue->mutex, queue->async_taken);
      });
      return found;
    case IBV_EVENT_SRQ_LIMIT_REACHED:
    case IBV_EVENT_SRQ_ERR:
      context.adapter().with_shared_queue(from.handle, [&](ReceivePool* pool) {
        if (pool == nullptr) return;
        to.element.srq = pool;
        taken(pool->mutex, pool->async_taken);
      });
      return found;
    case IBV_EVENT_DEVICE_FATAL:
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
      to.element.port_num = static_cast<int>(from.handle);
      return true;
    default:
      context.adapter().with_queue_pair(from.handle, [&](QueuePair* pair) {
        if (pair == nullptr) return;
        to.element.qp = &pair->qp_base;
        taken(pair->qp_base.mutex, pair->async_taken);
      });
      return found;
  }
}

void acknowledge(pthread_mutex_t& mutex, pthread_cond_t& condition, std::uint32_t& count,
                 std::uint32_t events) {
  ::pthread_mutex_lock(&mutex);
  count += events;
  ::pthread_cond_signal(&condition);
  ::pthread_mutex_unlock(&mutex);
}

}  // namespace

FAKEVERBS_ENTRY int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
  Event next;
  do {
    if (Context::of(context).next_event(next) != 0) return -1;
  } while (!resolve(Context::of(context), next, *event));
  return 0;
}

FAKEVERBS_ENTRY void ibv_ack_async_event(ibv_async_event* event) {
  switch (event->event_type) {
    case IBV_EVENT_CQ_ERR: {
      ibv_cq& queue = *event->element.cq;
      return acknowledge(queue.mutex, queue.cond, queue.async_events_completed, 1);
    }
    case IBV_EVENT_SRQ_LIMIT_REACHED:
    case IBV_EVENT_SRQ_ERR: {
      ibv_srq& pool = *event->element.srq;
      return acknowledge(pool.mutex, pool.cond, pool.events_completed, 1);
    }
    case IBV_EVENT_DEVICE_FATAL:
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
      return;
    default: {
      ibv_qp& pair = *event->element.qp;
      return acknowledge(pair.mutex, pair.cond, pair.events_completed, 1);
    }
  }
}

FAKEVERBS_ENTRY void ibv_ack_cq_events(ibv_cq* queue, unsigned count) {
  acknowledge(queue->mutex, queue->cond, queue->comp_events_completed, count);
}
