#include "tcp_queue.hpp"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "tcp_context.hpp"
#include "tcp_endpoint.hpp"

namespace weft::tcp {

TcpQueue::TcpQueue(TcpContext& context, std::uint32_t capacity, provider::QueueEvents& events)
    : Group(context.thread_mode(), capacity, events),
      context_(context),
      epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  if (epoll_ < 0) {
    throw Error(Status::resource_limit, std::string("cannot make a completion queue: no epoll descriptor: ") +
                                            std::strerror(errno) +
                                            "; raise the limit of open files (ulimit -n)");
  }
  context_.add_group(*this);
}

TcpQueue::~TcpQueue() {
  context_.forget(*this);
  context_.remove_group(*this);
  if (epoll_ >= 0) ::close(epoll_);
}

void TcpQueue::add(TcpEndpoint& endpoint) noexcept {
  endpoint.member_index_ = static_cast<std::uint32_t>(endpoints_.size());
  endpoint.listed_ = true;
  endpoints_.push_back(&endpoint);
  watch_all();
  for (TcpEndpoint* waiting : waiting_) watch_output(*waiting, true);  // no longer alone
}

void TcpQueue::remove(TcpEndpoint& endpoint) noexcept {
  if (!endpoint.listed_) return;
  endpoint.listed_ = false;
  const std::uint32_t index = endpoint.member_index_;
  endpoints_[index] = endpoints_.back();
  endpoints_[index]->member_index_ = index;
  endpoints_.pop_back();
  std::erase(waiting_, &endpoint);
  unwatch(endpoint);
  if (hot_ == &endpoint) hot_ = nullptr;
}

void TcpQueue::watch(TcpEndpoint& endpoint) noexcept {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = &endpoint;
  endpoint.watched_output_ = false;
  endpoint.watched_ = epoll_ctl(epoll_, EPOLL_CTL_ADD, endpoint.socket(), &event) == 0;
  if (!endpoint.watched_) endpoint.path_broken(errno, "the socket cannot be watched by epoll");
}

void TcpQueue::unwatch(TcpEndpoint& endpoint) noexcept {
  if (endpoint.watched_) epoll_ctl(epoll_, EPOLL_CTL_DEL, endpoint.socket(), nullptr);
  endpoint.watched_ = false;
}

// While one thread spins over a lone endpoint, the kernel need not note each arrival in an epoll set that
// nobody reads.
void TcpQueue::unwatch_lone() noexcept {
  unwatch(*endpoints_.front());
  want_helper();  // it relied on the set; now it must look whether the program stays
}

// Before anybody sleeps, and when there is more than one.
void TcpQueue::watch_all() noexcept {
  spins_ = 0;
  if (endpoints_.empty()) return;
  // Only a lone endpoint is ever left out, so it is the first, or just one more has come.
  for (const std::size_t index : {std::size_t{0}, endpoints_.size() - 1}) {
    if (index < endpoints_.size() && !endpoints_[index]->watched_) watch(*endpoints_[index]);
  }
}

void TcpQueue::watch_output(TcpEndpoint& endpoint, bool output) noexcept {
  if (!endpoint.watched_ || endpoint.watched_output_ == output) return;
  endpoint.watched_output_ = output;
  epoll_event event{};
  event.events = output ? EPOLLIN | EPOLLOUT : EPOLLIN;
  event.data.ptr = &endpoint;
  epoll_ctl(epoll_, EPOLL_CTL_MOD, endpoint.socket(), &event);
}

void TcpQueue::output_waits(TcpEndpoint& endpoint, bool waits) noexcept {
  if (waits) {
    waiting_.push_back(&endpoint);
    // A lone endpoint is simply tried at each poll; before anybody sleeps it is watched (arm,
    // drive_for_absent).
    if (endpoints_.size() > 1) watch_output(endpoint, true);
    want_helper();
  } else {
    std::erase(waiting_, &endpoint);
    watch_output(endpoint, false);
  }
}

void TcpQueue::want_helper() noexcept {
  if (!helper_sleeps_.load(std::memory_order_relaxed)) return;
  helper_sleeps_.store(false, std::memory_order_relaxed);
  context_.request_service();
}

void TcpQueue::driven_by(TcpQueue& other) {
  const engine::HelperEntry entry(other.gate());
  if (std::find(other.also_.begin(), other.also_.end(), this) != other.also_.end()) return;
  other.also_.push_back(this);
  // Who sleeps on the other queue wakes for this group's sockets as well.
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = nullptr;
  epoll_ctl(other.epoll_, EPOLL_CTL_ADD, epoll_, &event);
}

void TcpQueue::no_longer_drives(TcpQueue& other) noexcept {
  const engine::HelperEntry entry(gate());
  std::erase(also_, &other);
}

std::size_t TcpQueue::poll(Completion* out, std::size_t room) noexcept {
  const engine::Entry entry(gate());
  note_activity();
  const bool armed = pause_signals();
  for (TcpQueue* other : also_) {
    // Not waiting: two queues may drive each other.
    if (!other->gate().try_enter()) continue;
    other->note_activity();
    other->drive(other->armed());
    other->gate().leave();
  }
  drive(armed);
  if (tick_.load(std::memory_order_relaxed)) [[unlikely]] {
    tick_.store(false, std::memory_order_relaxed);
    release_held_back();
  }
  const std::size_t count = take(out, room);
  if (armed) [[unlikely]]
    resume_signals();
  return count;
}

bool TcpQueue::arm() noexcept {
  const engine::Entry entry(gate());
  note_activity();
  watch_all();
  for (TcpQueue* other : also_) {
    if (!other->gate().try_enter()) continue;  // somebody drives it
    other->watch_all();
    other->gate().leave();
  }
  for (TcpEndpoint* endpoint : waiting_) watch_output(*endpoint, true);
  return arm_ring();
}

void TcpQueue::drive_ready(int most_events) noexcept {
  std::array<epoll_event, 64> events;
  const int ready = epoll_wait(epoll_, events.data(), most_events, 0);
  for (int i = 0; i < ready; ++i) {
    auto* endpoint = static_cast<TcpEndpoint*>(events[static_cast<std::size_t>(i)].data.ptr);
    if (endpoint == nullptr) continue;  // a group this queue drives as well
    if (!endpoint->listed_) continue;   // ended meanwhile, in this round
    const std::uint32_t what = events[static_cast<std::size_t>(i)].events;
    if ((what & EPOLLOUT) != 0) endpoint->resume();
    if (!endpoint->listed_) continue;
    if ((what & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0 && endpoint->step()) {
      misses_ = endpoint == hot_ ? 0 : misses_ + 1;
      hot_ = endpoint->listed_ ? endpoint : nullptr;
    }
  }
}

void TcpQueue::drive(bool somebody_sleeps) noexcept {
  if (endpoints_.size() == 1) [[likely]] {
    constexpr unsigned many_spins = 256;
    if (!somebody_sleeps && spins_ < many_spins && ++spins_ == many_spins) unwatch_lone();
    if (!waiting_.empty()) waiting_.front()->resume();
    if (!endpoints_.empty()) endpoints_.front()->step();
    return;
  }
  if (endpoints_.empty()) return;
  // Where data came last it often comes next: ask that socket first, unless it keeps being elsewhere.
  constexpr unsigned most_misses = 8;
  constexpr int most_events = 32;
  if (hot_ != nullptr && misses_ < most_misses) {
    TcpEndpoint& hot = *hot_;
    if (hot.step()) {
      if (!hot.listed_) hot_ = nullptr;
      if (++hits_ % 4 != 0) return;
    }
  }
  drive_ready(most_events);
}

bool TcpQueue::drive_for_absent() noexcept {
  if (!gate().try_enter_helper()) return false;
  watch_all();
  for (TcpEndpoint* endpoint : waiting_) watch_output(*endpoint, true);
  drive_ready(64);
  gate().leave_helper();
  return true;
}

bool TcpQueue::send_held_back() noexcept {
  if (!gate().try_enter_helper()) return true;
  release_held_back();
  gate().leave_helper();
  return false;
}

void TcpQueue::close_in_child() noexcept {
  for (TcpEndpoint* endpoint : endpoints_) endpoint->close_in_child();
  ::close(epoll_);
  epoll_ = -1;
}

}  // namespace weft::tcp
