#include "helped_context.hpp"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "limit_text.hpp"

namespace weft::engine {

namespace {

using namespace std::chrono_literals;

constexpr auto look_again = 10ms;  // how soon the helper notices that a program stays away
constexpr auto look_at_sleeper =
    40ms;  // a program asleep on its descriptor wakes by itself; this is for what is held back
constexpr auto look_at_stuck = 2ms;
constexpr auto look_at_draining = 1ms;

}  // namespace

HelpedContext::HelpedContext(provider::Host& host, const provider::OpenRequest& request,
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

HelpedContext::~HelpedContext() {
  if (helper_epoll_ >= 0) ::close(helper_epoll_);
}

void HelpedContext::look_after(HelpedQueue& queue) {
  {
    const std::lock_guard lock(service_mutex_);
    queues_.push_back(&queue);
  }
  request_service();
}

HelpedQueue& HelpedContext::leading_queue(const provider::EndpointRequest& request) {
  auto& receives = *static_cast<HelpedQueue*>(request.receive_queue);
  auto& sends = *static_cast<HelpedQueue*>(request.send_queue);
  if (&receives != &sends) receives.driven_by(sends);
  return receives;
}

void HelpedContext::forget(HelpedQueue& queue) noexcept {
  const std::lock_guard lock(service_mutex_);
  std::erase(queues_, &queue);
  for (HelpedQueue* other : queues_) other->part_from(queue);
}

// Is the program of this queue away? Then its descriptor joins the helper's epoll set, until the program is
// seen again.
HelpedContext::Clock::time_point HelpedContext::look_at(HelpedQueue& queue, Clock::time_point now) noexcept {
  HelpedQueue::Watch& watch = queue.helper_notes();
  const std::uint64_t activity = queue.activity();
  // A program that closes has often done all it does.
  const bool drains = queue.drains();
  const auto soon = drains ? look_at_draining : look_again;
  if (activity != watch.seen_activity) {
    watch.seen_activity = activity;
    watch.quiet_rounds = 0;
    if (watch.away) {
      epoll_ctl(helper_epoll_, EPOLL_CTL_DEL, queue.descriptor(), nullptr);
      watch.away = false;
    }
    queue.set_tick();
    return now + (queue.stuck() ? look_at_stuck : soon);
  }
  // A program asleep on its descriptor wakes by itself: at first only what is held back is sent. If it stays
  // away nevertheless the helper drives, and after a while sleeps on the same descriptor.
  constexpr int rounds_to_sleep = 25;
  if (!drains && queue.armed() && ++watch.quiet_rounds < rounds_to_sleep) {
    if (watch.quiet_rounds > 1 || queue.stuck() || queue.unprepared()) queue.drive_for_absent();
    queue.send_held_back();
    return now + (queue.stuck() ? look_at_stuck : look_at_sleeper);
  }
  if (!watch.away) {
    epoll_event event{};
    event.events = EPOLLIN | EPOLLOUT;
    event.data.ptr = &queue;
    watch.away = epoll_ctl(helper_epoll_, EPOLL_CTL_ADD, queue.descriptor(), &event) == 0;
  }
  queue.set_helper_sleeps(true);  // before looking, so that nothing falls between looking and sleeping
  const bool driven = queue.drive_for_absent();
  const bool more = queue.send_held_back();
  if (watch.away && driven && !more && queue.may_sleep()) return Clock::time_point::max();
  queue.set_helper_sleeps(false);
  return now + (queue.stuck() ? look_at_stuck : soon);
}

HelpedContext::Clock::time_point HelpedContext::service(Clock::time_point now) noexcept {
  const std::lock_guard lock(service_mutex_);
  auto next = Clock::time_point::max();
  for (HelpedQueue* queue : queues_) {
    queue->serve();
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

void HelpedContext::enter_child() noexcept {
  Context::enter_child();
  for (HelpedQueue* queue : queues_) queue->close_in_child();
  ::close(helper_epoll_);
  helper_epoll_ = -1;
}

}  // namespace weft::engine
