#include "descriptor_queue.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "descriptor_context.hpp"
#include "descriptor_endpoint.hpp"

namespace weft::engine {

DescriptorQueue::DescriptorQueue(DescriptorContext& context, std::uint32_t capacity,
                                 provider::QueueEvents& events)
    : HelpedQueue(context, capacity, events) {}

DescriptorQueue::~DescriptorQueue() { leave_helper_alone(); }

void DescriptorQueue::add(DescriptorEndpoint& endpoint) noexcept {
  endpoint.member_index_ = static_cast<std::uint32_t>(endpoints_.size());
  endpoint.listed_ = true;
  endpoints_.push_back(&endpoint);
  watch_all();
  for (DescriptorEndpoint* waiting : waiting_) watch_output(*waiting, true);  // no longer alone
}

void DescriptorQueue::remove(DescriptorEndpoint& endpoint) noexcept {
  if (!endpoint.listed_) return;
  endpoint.listed_ = false;
  ++removed_;
  const std::uint32_t index = endpoint.member_index_;
  endpoints_[index] = endpoints_.back();
  endpoints_[index]->member_index_ = index;
  endpoints_.pop_back();
  std::erase(waiting_, &endpoint);
  unwatch(endpoint);
  if (hot_ == &endpoint) hot_ = nullptr;
}

void DescriptorQueue::watch(DescriptorEndpoint& endpoint) noexcept {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = &endpoint;
  endpoint.watched_output_ = false;
  endpoint.watched_ = epoll_ctl(epoll(), EPOLL_CTL_ADD, endpoint.descriptor_, &event) == 0;
  if (!endpoint.watched_) endpoint.path_broken(errno, "the descriptor cannot be watched by epoll");
}

void DescriptorQueue::unwatch(DescriptorEndpoint& endpoint) noexcept {
  if (endpoint.watched_) epoll_ctl(epoll(), EPOLL_CTL_DEL, endpoint.descriptor_, nullptr);
  endpoint.watched_ = false;
}

// While one thread spins over a lone endpoint, the kernel need not note each arrival in an epoll set that
// nobody reads.
void DescriptorQueue::unwatch_lone() noexcept {
  unwatch(*endpoints_.front());
  want_helper();  // it relied on the set; now it must look whether the program stays
}

// Before anybody sleeps, and when there is more than one.
void DescriptorQueue::watch_all() noexcept {
  spins_ = 0;
  if (endpoints_.empty()) return;
  // Only a lone endpoint is ever left out, so it is the first, or just one more has come.
  for (const std::size_t index : {std::size_t{0}, endpoints_.size() - 1}) {
    if (index < endpoints_.size() && !endpoints_[index]->watched_) watch(*endpoints_[index]);
  }
}

void DescriptorQueue::watch_output(DescriptorEndpoint& endpoint, bool output) noexcept {
  if (!endpoint.watched_ || endpoint.watched_output_ == output) return;
  endpoint.watched_output_ = output;
  epoll_event event{};
  event.events = output ? EPOLLIN | EPOLLOUT : EPOLLIN;
  event.data.ptr = &endpoint;
  epoll_ctl(epoll(), EPOLL_CTL_MOD, endpoint.descriptor_, &event);
}

void DescriptorQueue::output_waits(DescriptorEndpoint& endpoint, bool waits) noexcept {
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

// Who sleeps on another queue's set wakes for this group's sockets as well.
void DescriptorQueue::watch_in(int set) noexcept {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = nullptr;
  epoll_ctl(set, EPOLL_CTL_ADD, epoll(), &event);
}

// Receives what is there; true when anything came. One that failed leaves the list, and waits for its end.
bool DescriptorQueue::step(DescriptorEndpoint& endpoint) noexcept {
  const bool any = endpoint.moving() && endpoint.receive_some();
  if (!endpoint.moving()) remove(endpoint);
  return any;
}

std::size_t DescriptorQueue::poll(Completion* out, std::size_t room) noexcept {
  const Entry entry(gate());
  note_activity();
  const bool armed = pause_signals();
  if (drives_others()) [[unlikely]]
    drive_others();
  drive(armed);
  if (ticked()) [[unlikely]]
    tick();
  send_due();
  const std::size_t count = take(out, room);
  if (armed) [[unlikely]]
    resume_signals();
  return count;
}

bool DescriptorQueue::arm() noexcept {
  const Entry entry(gate());
  note_activity();
  if (drives_others()) static_cast<void>(prepare_others());  // sockets always can be slept on
  static_cast<void>(prepare_sleep());
  send_due_now();
  return arm_ring();
}

bool DescriptorQueue::prepare_sleep() noexcept {
  watch_all();
  for (DescriptorEndpoint* endpoint : waiting_) watch_output(*endpoint, true);
  return true;
}

void DescriptorQueue::drive_ready(int most_events) noexcept {
  std::array<epoll_event, 64> events;
  const std::uint64_t removed_before = removed_;
  const int ready = epoll_wait(epoll(), events.data(), most_events, 0);
  for (int i = 0; i < ready; ++i) {
    auto* endpoint = static_cast<DescriptorEndpoint*>(events[static_cast<std::size_t>(i)].data.ptr);
    if (endpoint == nullptr) continue;  // a group this queue drives as well
    __builtin_prefetch(&endpoint->descriptor_);
    endpoint->prefetch();
    if (removed_ != removed_before && !endpoint->listed_) continue;  // ended meanwhile, in this round
    const std::uint32_t what = events[static_cast<std::size_t>(i)].events;
    if ((what & EPOLLOUT) != 0) endpoint->resume();
    if (removed_ != removed_before && !endpoint->listed_) continue;
    endpoint->prefetch_receive();
    if ((what & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0 && step(*endpoint)) {
      in_a_row_ = endpoint == hot_ ? in_a_row_ + 1 : 1;
      hot_ = endpoint->listed_ ? endpoint : nullptr;
    }
  }
}

void DescriptorQueue::drive(bool somebody_sleeps) noexcept {
  if (endpoints_.size() == 1) [[likely]] {
    constexpr unsigned many_spins = 256;
    if (spins_ < many_spins && !somebody_sleeps && ++spins_ == many_spins) unwatch_lone();
    if (!waiting_.empty()) [[unlikely]] {
      waiting_.front()->resume();
      if (endpoints_.empty()) return;
    }
    step(*endpoints_.front());
    return;
  }
  if (endpoints_.empty()) return;
  // Where data came several times in a row it comes again: that socket is asked first, and the others in
  // between.
  constexpr unsigned often = 4;
  constexpr int most_events = 32;
  if (hot_ != nullptr && in_a_row_ >= often) {
    DescriptorEndpoint& hot = *hot_;
    if (step(hot)) {
      if (!hot.listed_) hot_ = nullptr;
      if (++in_a_row_ % 4 != 0) return;
    }
  }
  drive_ready(most_events);
}

bool DescriptorQueue::drive_for_absent() noexcept {
  if (!gate().try_enter_helper()) return false;
  static_cast<void>(prepare_sleep());
  drive_ready(64);
  send_due_now();
  gate().leave_helper();
  return true;
}

void DescriptorQueue::close_in_child() noexcept {
  // Those not yet up, too.
  for (Endpoint* endpoint : members()) static_cast<DescriptorEndpoint*>(endpoint)->close_in_child();
  HelpedQueue::close_in_child();
}

}  // namespace weft::engine
