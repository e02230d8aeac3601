// Completion channels.
#include <unistd.h>

#include <cerrno>

#include "completion_queue.hpp"

namespace fakeverbs {

ibv_comp_channel* create_channel(Context& context) {
  Adapter& adapter = context.adapter();
  const std::uint32_t number = adapter.next_channel();
  const int descriptor = open_event_descriptor(settings().network,
                                               {static_cast<std::uint32_t>(adapter.segment().pid()), number});
  if (descriptor < 0) return nullptr;
  auto* const channel = new Channel{};
  channel->context = &context.context;
  channel->fd = descriptor;
  channel->number = number;
  return channel;
}

int destroy_channel(ibv_comp_channel* channel) {
  Context& context = Context::of(channel->context);
  ::pthread_mutex_lock(&context.context.mutex);
  const bool in_use = channel->refcnt != 0;
  ::pthread_mutex_unlock(&context.context.mutex);
  if (in_use) return EBUSY;
  ::close(channel->fd);
  delete static_cast<Channel*>(channel);
  return 0;
}

int next_completion_event(ibv_comp_channel* channel, ibv_cq** queue, void** queue_context) {
  Adapter& adapter = Context::of(channel->context).adapter();
  while (true) {
    Event event;
    if (receive_event(channel->fd, event) != 0) return -1;
    // Now there is room for events that found none.
    adapter.for_each_completion_queue([channel](CompletionQueue& other) {
      if (other.channel == channel) other.send_owed_event();
    });
    bool found = false;
    adapter.with_completion_queue(event.handle, [&](CompletionQueue* object) {
      if (object == nullptr) return;
      ::pthread_mutex_lock(&object->mutex);
      ++object->events_taken;
      ::pthread_mutex_unlock(&object->mutex);
      *queue = object->plain();
      *queue_context = object->cq_context;
      found = true;
    });
    if (found) return 0;
  }
}

}  // namespace fakeverbs
