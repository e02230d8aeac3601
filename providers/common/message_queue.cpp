#include "message_queue.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "limit_text.hpp"
#include "message_context.hpp"
#include "message_endpoint.hpp"

namespace weft::engine {

namespace {

// So many polls, and a program is one that does not sleep.
constexpr std::uint32_t polls_of_the_sleepless = 1000;
// How often to look again before sleeping when something keeps coming.
constexpr int most_looks = 4;

// False: the system has no room for it. That it stands there already will do.
[[nodiscard]] bool watch_input(int set, int descriptor) noexcept {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = nullptr;
  return epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &event) == 0 || errno == EEXIST;
}

void watch_first(int set, int descriptor, const char* what) {
  if (watch_input(set, descriptor)) return;
  throw Error(Status::resource_limit,
              std::string("cannot make a completion queue: ") + what + descriptor_error_text(errno));
}

}  // namespace

MessageQueue::MessageQueue(MessageContext& context, std::uint32_t capacity, provider::QueueEvents& events)
    : HelpedQueue(context, capacity, events),
      context_(context),
      buffers_(context.message_options().buffers),
      doorbell_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (doorbell_ < 0) {
    throw Error(Status::resource_limit,
                "cannot make a completion queue: no event descriptor: " + descriptor_error_text(errno));
  }
  try {
    watch_first(epoll(), doorbell_, "its event descriptor cannot be watched: ");
  } catch (...) {
    ::close(doorbell_);
    throw;
  }
}

MessageQueue::~MessageQueue() {
  leave_helper_alone();
  if (doorbell_ >= 0) ::close(doorbell_);
}

void MessageQueue::watch_fabric(int descriptor) {
  watch_first(epoll(), descriptor, "the fabric's descriptor cannot be watched: ");
  fabric_descriptors_.push_back(descriptor);
  for_drivers([&](int set) { watch_for_sleepers(set, descriptor); });
  if (!watches_) set_watches(true);
}

// What cannot be watched is looked at often, until it can.
void MessageQueue::watch_for_sleepers(int set, int descriptor) noexcept {
  if (!watch_input(set, descriptor)) unwatched_ = true;
}

// Every set that a descriptor is in costs those who send to it: none is worth it while nobody sleeps.
void MessageQueue::set_watches(bool watches) noexcept {
  watches_ = watches;
  unwatched_ = false;
  for (const int descriptor : fabric_descriptors_) {
    const auto change = [&](int set) {
      if (watches) {
        watch_for_sleepers(set, descriptor);
      } else {
        epoll_ctl(set, EPOLL_CTL_DEL, descriptor, nullptr);
      }
    };
    change(epoll());
    for_drivers(change);
  }
  if (watches) for_drivers([this](int set) { watch_for_sleepers(set, doorbell_); });
}

void MessageQueue::polled_awake() noexcept {
  if (++awake_polls_ < polls_of_the_sleepless || slept_on()) return;
  set_watches(false);
  want_helper();  // it may sleep on what is watched no longer
}

// By hand: what a forked child still holds open would stay in the sets.
void MessageQueue::forget_fabric(int descriptor) noexcept {
  std::erase(fabric_descriptors_, descriptor);
  epoll_ctl(epoll(), EPOLL_CTL_DEL, descriptor, nullptr);
  for_drivers([descriptor](int set) { epoll_ctl(set, EPOLL_CTL_DEL, descriptor, nullptr); });
}

// The descriptors themselves and not this queue's set: sets in sets have a limited depth, and the fabric's
// descriptor may be a set of sets already.
void MessageQueue::watch_in(int set) noexcept {
  watch_for_sleepers(set, doorbell_);
  for (const int descriptor : fabric_descriptors_) watch_for_sleepers(set, descriptor);
}

void MessageQueue::add(MessageEndpoint& endpoint) {
  touched_.reserve(seats_.size() + 1);
  waiting_.reserve(seats_.size() + 1);
  retrying_.reserve(seats_.size() + 1);
  pulling_.reserve(seats_.size() + 1);
  stepping_.reserve(seats_.size() + 1);
  awake_to_.reserve(seats_.size() + 1);
  lingering_.reserve(seats_.size() + 1);
  free_seats_.reserve(seats_.size() + 1);
  if (free_seats_.empty()) {
    if (seats_.size() > message::slot_mask) {
      throw Error(Status::resource_limit, "cannot make an endpoint: " + std::to_string(seats_.size()) +
                                              " are on this queue, the largest number; use a further queue");
    }
    seats_.emplace_back();
    free_seats_.push_back(static_cast<std::uint32_t>(seats_.size() - 1));
  }
  buffers_.add_share(
      [this](std::byte* bytes, std::size_t length) { return register_buffers(bytes, length); });
  endpoint.seat_ = free_seats_.back();
  free_seats_.pop_back();
  seats_[endpoint.seat_] = {endpoint.token_, &endpoint};
}

void MessageQueue::remove(MessageEndpoint& endpoint) noexcept {
  forget_lists(endpoint);
  seats_[endpoint.seat_] = {};
  free_seats_.push_back(endpoint.seat_);
  buffers_.drop_share(endpoint.held_);
  if (endpoint.held_ != 0) buffers_.disown(endpoint);
}

void MessageQueue::forget_lists(MessageEndpoint& endpoint) noexcept {
  std::erase(waiting_, &endpoint);
  std::erase(awake_to_, &endpoint);
  std::erase(lingering_, &endpoint);
  std::erase(pulling_, &endpoint);
  std::replace(touched_.begin(), touched_.end(), &endpoint, static_cast<MessageEndpoint*>(nullptr));
  std::replace(retrying_.begin(), retrying_.end(), &endpoint, static_cast<MessageEndpoint*>(nullptr));
  std::replace(stepping_.begin(), stepping_.end(), &endpoint, static_cast<MessageEndpoint*>(nullptr));
}

void MessageQueue::output_waits(MessageEndpoint& endpoint, bool waits) noexcept {
  if (waits) {
    waiting_.push_back(&endpoint);  // has room for all
    want_helper();
  } else {
    std::erase(waiting_, &endpoint);
  }
}

void MessageQueue::message_arrived(const std::byte* bytes, std::size_t length) noexcept {
  constexpr std::size_t head = sizeof(message::Header);
  if (length >= head) [[likely]] {
    message_arrived(wire::load<message::Header>(bytes), bytes + head, length - head);
  } else {
    context_.message_counts().dropped.fetch_add(1, std::memory_order_relaxed);
  }
}

void MessageQueue::message_arrived(const message::Header& header, const std::byte* payload,
                                   std::size_t length) noexcept {
  Counts::add(counts().arrivals);
  const std::uint32_t seat = header.slot_and_kind & message::slot_mask;
  if (seat < seats_.size() && seats_[seat].token == header.token && header.token != 0) [[likely]] {
    seats_[seat].endpoint->take_message(header, payload, length);
    return;
  }
  // Late, for one that has ended; or a stranger's.
  context_.message_counts().dropped.fetch_add(1, std::memory_order_relaxed);
}

void MessageQueue::sent(SendBuffer& buffer) noexcept {
  if (buffer.owner != nullptr) {
    buffer.owner->give_back(buffer);
  } else {
    buffers_.give_left_behind(buffer);
  }
}

void MessageQueue::send_failed(SendBuffer& buffer, std::int32_t native_code, std::string_view text) noexcept {
  MessageEndpoint* const owner = buffer.owner;
  sent(buffer);
  if (owner != nullptr) owner->fabric_failed(native_code, text);
}

std::size_t MessageQueue::poll(Completion* out, std::size_t room) noexcept {
  const Entry entry(gate());
  note_activity();
  const bool armed = pause_signals();
  if (watches_ && !armed) [[unlikely]]
    polled_awake();
  untold_ = false;
  if (drives_others()) [[unlikely]]
    drive_others();
  drive(armed);
  if (ticked()) [[unlikely]]
    tick();
  send_due();
  const std::size_t count = take(out, room);
  if (armed) [[unlikely]] {
    resume_signals();
    drove_beside_sleeper();
  }
  return count;
}

// Preparing costs too much to do it here, for a thread that perhaps no longer sleeps; the helper sees to it.
void MessageQueue::drove_beside_sleeper() noexcept {
  set_unprepared(true);
  want_helper();
}

void MessageQueue::drive(bool /*somebody_sleeps*/) noexcept {
  if (rung_.load(std::memory_order_relaxed)) [[unlikely]]
    hear_doorbell();
  move_on();
}

bool MessageQueue::move_on() noexcept {
  if (in_child_) [[unlikely]]
    return false;  // what is there is the parent's
  bool any = progress();
  if (!pulling_.empty()) [[unlikely]]
    any = pull_on() || any;
  if (!touched_.empty()) settle_touched();
  if (!waiting_.empty()) [[unlikely]]
    retry_waiting();
  if (stuck()) [[unlikely]]
    set_stuck(needs_looks());
  return any;
}

bool MessageQueue::needs_looks() const noexcept {
  return !waiting_.empty() || !pulling_.empty() || untold_ || unwatched_ ||
         (linger_ && buffers_.owned() != 0);
}

void MessageQueue::pulls(MessageEndpoint& endpoint) noexcept {
  pulling_.push_back(&endpoint);
}  // has room for all

// A step for each; those that begin meanwhile have theirs in the next round. True when the fabric took any.
bool MessageQueue::pull_on() noexcept {
  bool any = false;
  stepping_.swap(pulling_);
  for (MessageEndpoint*& place : stepping_) {
    MessageEndpoint* const endpoint = std::exchange(place, nullptr);
    if (endpoint == nullptr) continue;
    endpoint->pull_on();
    any = any || !endpoint->pulls_refused_;
  }
  stepping_.clear();
  return any;
}

void MessageQueue::pulled(MessageEndpoint& endpoint, std::uint64_t number, std::uint64_t length) noexcept {
  endpoint.pull_arrived(number, length);
}

void MessageQueue::pull_failed(MessageEndpoint& endpoint, std::int32_t native_code,
                               std::string_view text) noexcept {
  endpoint.fabric_failed(native_code, text);
}

// What arrived may have broken or ended some of them meanwhile; their places are null then.
void MessageQueue::settle_touched() noexcept {
  for (MessageEndpoint* const& endpoint : touched_) {
    if (endpoint == nullptr) continue;
    endpoint->touched_ = false;
    endpoint->settle_arrivals();
  }
  touched_.clear();
}

void MessageQueue::retry_waiting() noexcept {
  retrying_.swap(waiting_);
  for (MessageEndpoint*& place : retrying_) {
    MessageEndpoint* const endpoint = std::exchange(place, nullptr);
    if (endpoint == nullptr) continue;
    endpoint->waits_ = false;
    endpoint->resume();
  }
  retrying_.clear();
}

bool MessageQueue::arm() noexcept {
  const Entry entry(gate());
  note_activity();
  const bool others = !drives_others() || prepare_others();
  send_due_now();
  if (!prepare_sleep() || !others) return false;
  return arm_ring();
}

bool MessageQueue::prepare_sleep() noexcept {
  if (in_child_) return true;  // nobody sleeps on it there
  asleep_since_ = activity();
  awake_polls_ = 0;
  if ((!watches_ && !fabric_descriptors_.empty()) || unwatched_) set_watches(true);
  bool ready = false;
  for (int look = 0; look < most_looks && !ready; ++look) {
    // With a doorbell: told first, looked then, so that what came before the peers knew is found at once.
    tell_asleep();
    ready = !needs_doorbell() || !move_on();
    if (!ready || (needs_doorbell() && !linger_)) continue;
    ready = arm_fabric();
    if (!ready) move_on();
  }
  // No descriptor tells when a fabric takes messages again, or when a peer comes up.
  untold_ = !awake_to_.empty() || !lingering_.empty();
  ready = ready && std::all_of(pulling_.begin(), pulling_.end(),
                               [](const MessageEndpoint* endpoint) { return endpoint->pulls_refused_; });
  if (needs_looks() && !stuck()) {
    set_stuck(true);
    context_.request_service();
  }
  set_unprepared(!ready);
  return ready;
}

bool MessageQueue::may_sleep() noexcept {
  if (!gate().try_enter_helper()) return false;
  const bool may = prepare_sleep() && !stuck();
  gate().leave_helper();
  return may;
}

bool MessageQueue::drive_for_absent() noexcept {
  if (!gate().try_enter_helper()) return false;
  drive(false);
  send_due_now();
  // A step that took what the descriptor told of leaves it silent.
  if (slept_on() && !prepare_sleep()) wake_sleepers();
  gate().leave_helper();
  return true;
}

// Each peer that takes this side for awake hears that its next message needs a ring; so does each for which
// something may linger, since that word tells when it is gone.
void MessageQueue::tell_asleep() noexcept {
  const auto told = [](MessageEndpoint* endpoint) { return endpoint->tell_asleep(); };
  std::erase_if(awake_to_, told);
  // Those not yet told stay in both.
  std::erase_if(lingering_, [&](MessageEndpoint* endpoint) {
    return !endpoint->lingers_ || (endpoint->told_asleep_ && told(endpoint));
  });
}

void MessageQueue::wake() noexcept {
  if (rung_.exchange(true, std::memory_order_relaxed)) return;
  const std::uint64_t one = 1;
  static_cast<void>(!::write(doorbell_, &one, sizeof one));
}

void MessageQueue::hear_doorbell() noexcept {
  rung_.store(false, std::memory_order_relaxed);
  std::uint64_t rings = 0;
  static_cast<void>(!::read(doorbell_, &rings, sizeof rings));
}

void MessageQueue::close_in_child() noexcept {
  in_child_ = true;
  ::close(doorbell_);
  doorbell_ = -1;
  HelpedQueue::close_in_child();
}

}  // namespace weft::engine
