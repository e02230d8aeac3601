#include "descriptor_context.hpp"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "descriptor_endpoint.hpp"
#include "limit_text.hpp"

namespace weft::engine {

namespace {

using namespace std::chrono_literals;

constexpr auto look_again = 10ms;  // how soon the helper notices that a program stays away
constexpr auto look_at_sleeper =
    40ms;  // a program asleep on its descriptor wakes by itself; this is for what is held back

}  // namespace

DescriptorContext::DescriptorContext(provider::Host& host, const provider::OpenRequest& request,
                                     const EngineOptions& options)
    : Context(host, request, options),
      helped_(request.progress_mode == ProgressMode::automatic),
      events_(request.events),
      helper_epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  if (helper_epoll_ < 0) {
    throw Error(Status::resource_limit,
                "cannot open a context: no epoll descriptor: " + descriptor_error_text(errno));
  }
}

DescriptorContext::~DescriptorContext() {
  if (helper_epoll_ >= 0) ::close(helper_epoll_);
}

std::unique_ptr<provider::CompletionQueue> DescriptorContext::create_completion_queue(
    std::uint32_t capacity, provider::QueueEvents& events) {
  auto queue = std::make_unique<DescriptorQueue>(*this, capacity, events);
  {
    const std::lock_guard lock(service_mutex_);
    queues_.push_back(queue.get());
  }
  request_service();
  return queue;
}

DescriptorQueue& DescriptorContext::queue_of(const provider::EndpointRequest& request) {
  auto& receives = *static_cast<DescriptorQueue*>(request.receive_queue);
  auto& sends = *static_cast<DescriptorQueue*>(request.send_queue);
  if (&receives != &sends) receives.driven_by(sends);
  return receives;
}

void DescriptorContext::forget(DescriptorQueue& queue) noexcept {
  const std::lock_guard lock(service_mutex_);
  std::erase(queues_, &queue);
  for (DescriptorQueue* other : queues_) other->no_longer_drives(queue);
}

// Is the program of this queue away? Then its sockets join the helper's epoll set, until the program is seen
// again.
DescriptorContext::Clock::time_point DescriptorContext::look_at(DescriptorQueue& queue,
                                                                Clock::time_point now) noexcept {
  DescriptorQueue::Watch& watch = queue.helper_notes();
  const std::uint64_t activity = queue.activity();
  if (activity != watch.seen_activity) {
    watch.seen_activity = activity;
    watch.quiet_rounds = 0;
    if (watch.away) {
      epoll_ctl(helper_epoll_, EPOLL_CTL_DEL, queue.epoll(), nullptr);
      watch.away = false;
    }
    queue.set_tick();
    return now + look_again;
  }
  // A program asleep on its descriptor wakes by itself: at first only what is held back is sent. If it stays
  // away nevertheless the helper drives, and after a while sleeps on the same sockets.
  constexpr int rounds_to_sleep = 25;
  if (queue.armed() && ++watch.quiet_rounds < rounds_to_sleep) {
    if (watch.quiet_rounds > 1) queue.drive_for_absent();
    queue.send_held_back();
    return now + look_at_sleeper;
  }
  if (!watch.away) {
    epoll_event event{};
    event.events = EPOLLIN | EPOLLOUT;
    event.data.ptr = &queue;
    watch.away = epoll_ctl(helper_epoll_, EPOLL_CTL_ADD, queue.epoll(), &event) == 0;
  }
  queue.set_helper_sleeps(true);  // before looking, so that nothing falls between looking and sleeping
  const bool driven = queue.drive_for_absent();
  const bool more = queue.send_held_back();
  if (watch.away && driven && !more) return Clock::time_point::max();
  queue.set_helper_sleeps(false);
  return now + look_again;
}

DescriptorContext::Clock::time_point DescriptorContext::service(Clock::time_point now) noexcept {
  const std::lock_guard lock(service_mutex_);
  auto next = Clock::time_point::max();
  for (DescriptorQueue* queue : queues_) {
    if (helped_) {
      next = std::min(next, look_at(*queue, now));
    } else {
      queue->drive_for_absent();
      queue->send_held_back();
      next = now + look_again;
    }
  }
  return next;
}

void DescriptorContext::enter_child() noexcept {
  Context::enter_child();
  for (DescriptorQueue* queue : queues_) queue->close_in_child();
  ::close(helper_epoll_);
  helper_epoll_ = -1;
}

}  // namespace weft::engine
