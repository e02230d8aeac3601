#include "tcp_context.hpp"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tcp_endpoint.hpp"
#include "tcp_queue.hpp"

namespace weft::tcp {

namespace {

using namespace std::chrono_literals;

constexpr auto look_again = 10ms;  // how soon the helper notices that a program stays away
constexpr auto look_at_sleeper =
    40ms;  // a program asleep on its descriptor wakes by itself; this is for what is held back

}  // namespace

TcpContext::TcpContext(provider::Host& host, const provider::OpenRequest& request)
    : engine::Context(host, request, engine::EngineOptions{}),
      helped_(request.progress_mode == ProgressMode::automatic),
      events_(request.events),
      helper_epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  if (helper_epoll_ < 0) {
    throw Error(Status::resource_limit, std::string("cannot open a context: no epoll descriptor: ") +
                                            std::strerror(errno) +
                                            "; raise the limit of open files (ulimit -n)");
  }
  fill_attributes(attributes_);
  attributes_.provider = "tcp";
  attributes_.provider_version = "0.1.0";
  attributes_.fabric = "sockets";
  attributes_.device = request.device.empty() ? "any" : std::string(request.device);
  attributes_.trust = Trust::nobody;
  attributes_.trust_text =
      "Nothing is encrypted, and peers are not authenticated: whoever can reach the port can connect "
      "and be accepted. A peer reaches only what it was given keys for.";
}

TcpContext::~TcpContext() {
  if (helper_epoll_ >= 0) ::close(helper_epoll_);
}

std::unique_ptr<provider::CompletionQueue> TcpContext::create_completion_queue(
    std::uint32_t capacity, provider::QueueEvents& events) {
  auto queue = std::make_unique<TcpQueue>(*this, capacity, events);
  {
    const std::lock_guard lock(service_mutex_);
    queues_.push_back(queue.get());
  }
  request_service();
  return queue;
}

std::unique_ptr<provider::Endpoint> TcpContext::prepare_endpoint(const provider::EndpointRequest& request) {
  auto& receives = *static_cast<TcpQueue*>(request.receive_queue);
  auto& sends = *static_cast<TcpQueue*>(request.send_queue);
  if (&receives != &sends) receives.driven_by(sends);
  return std::make_unique<TcpEndpoint>(*this, receives, request);
}

void TcpContext::forget(TcpQueue& queue) noexcept {
  const std::lock_guard lock(service_mutex_);
  std::erase(queues_, &queue);
  for (TcpQueue* other : queues_) other->no_longer_drives(queue);
}

// Is the program of this queue away? Then its sockets join the helper's epoll set, until the program is seen
// again.
TcpContext::Clock::time_point TcpContext::look_at(TcpQueue& queue, Clock::time_point now) noexcept {
  TcpQueue::Watch& watch = queue.helper_notes();
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

TcpContext::Clock::time_point TcpContext::service(Clock::time_point now) noexcept {
  const std::lock_guard lock(service_mutex_);
  auto next = Clock::time_point::max();
  for (TcpQueue* queue : queues_) {
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

void TcpContext::enter_child() noexcept {
  engine::Context::enter_child();
  for (TcpQueue* queue : queues_) queue->close_in_child();
  ::close(helper_epoll_);
  helper_epoll_ = -1;
}

}  // namespace weft::tcp
