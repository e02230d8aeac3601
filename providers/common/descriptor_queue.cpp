#include "descriptor_queue.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "descriptor_context.hpp"
#include "descriptor_endpoint.hpp"

namespace weft::engine {

namespace {

constexpr std::uint64_t other_group = UINT64_MAX;  // in an epoll event, where a seat's number would be

}  // namespace

DescriptorQueue::DescriptorQueue(DescriptorContext& context, std::uint32_t capacity,
                                 provider::QueueEvents& events)
    : HelpedQueue(context, capacity, events), plain_receive_(context.plain_receive()) {}

DescriptorQueue::~DescriptorQueue() { leave_helper_alone(); }

void DescriptorQueue::add(DescriptorEndpoint& endpoint) noexcept {
  endpoint.member_index_ = static_cast<std::uint32_t>(endpoints_.size());
  endpoint.listed_ = true;
  endpoints_.push_back(&endpoint);
  if (free_seats_.empty()) {
    free_seats_.push_back(static_cast<std::uint32_t>(seats_.size()));
    seats_.emplace_back();
    free_seats_.reserve(seats_.size());  // removing allocates nothing
  }
  endpoint.seat_ = free_seats_.back();
  free_seats_.pop_back();
  seats_[endpoint.seat_] = {&endpoint, nullptr, endpoint.descriptor_, false};
  watch_all();
  for (DescriptorEndpoint* waiting : waiting_) watch_output(*waiting, true);  // no longer alone
}

void DescriptorQueue::remove(DescriptorEndpoint& endpoint) noexcept {
  if (!endpoint.listed_) return;
  endpoint.listed_ = false;
  seats_[endpoint.seat_] = {};
  free_seats_.push_back(endpoint.seat_);
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
  event.data.u64 = endpoint.seat_;
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
  event.data.u64 = endpoint.seat_;
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
  event.data.u64 = other_group;
  epoll_ctl(set, EPOLL_CTL_ADD, epoll(), &event);
}

// After receiving. An endpoint that failed leaves the list, and waits for its end.
void DescriptorQueue::look_after_step(DescriptorEndpoint& endpoint, Seat& seat) noexcept {
  if (!endpoint.moving()) {
    remove(endpoint);
    return;
  }
  seat.receive = endpoint.next_receive();
  seat.takes_scratch = endpoint.takes_scratch();
}

// Receives what is there; true when anything came.
bool DescriptorQueue::step(DescriptorEndpoint& endpoint) noexcept {
  const bool any = endpoint.moving() && endpoint.receive_some();
  look_after_step(endpoint, seats_[endpoint.seat_]);
  return any;
}

// As step. While the kernel is asked for the message, the processor fetches what it will touch.
bool DescriptorQueue::step_ready(Seat& seat) noexcept {
  DescriptorEndpoint& endpoint = *seat.endpoint;
  if (!seat.takes_scratch || plain_receive_ == nullptr) return step(endpoint);
  __builtin_prefetch(seat.receive);
  const std::ptrdiff_t length = plain_receive_(seat.descriptor, scratch(), scratch_size);
  const bool any = endpoint.moving() && endpoint.receive_rest(length);
  look_after_step(endpoint, seat);
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

// True when any endpoint was ready.
bool DescriptorQueue::drive_ready(int most_events) noexcept {
  std::array<epoll_event, 64> events;
  const int ready = epoll_wait(epoll(), events.data(), most_events, 0);
  for (int i = 0; i < ready; ++i) {
    const epoll_event event = events[static_cast<std::size_t>(i)];
    if (event.data.u64 == other_group) continue;  // this queue drives it as well
    Seat& seat = seats_[event.data.u64];
    DescriptorEndpoint* const endpoint = seat.endpoint;
    if (endpoint == nullptr) continue;  // ended meanwhile, in this round
    endpoint->prefetch();
    if ((event.events & EPOLLOUT) != 0) {
      endpoint->resume();
      if (seat.endpoint != endpoint) continue;
    }
    if ((event.events & ~static_cast<std::uint32_t>(EPOLLOUT)) == 0) continue;
    if (step_ready(seat)) {
      in_a_row_ = endpoint == hot_ ? in_a_row_ + 1 : 1;
      hot_ = seat.endpoint;  // null when it ended
    }
  }
  return ready > 0;
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
  // The program is back: a helper still asleep on these descriptors would wake for each arrival, find it
  // taken and sleep again, in the program's way.
  if (drive_ready(most_events)) want_helper();
}

bool DescriptorQueue::drive_for_absent() noexcept {
  if (!gate().try_enter_helper()) return false;
  static_cast<void>(prepare_sleep());
  static_cast<void>(drive_ready(64));
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
