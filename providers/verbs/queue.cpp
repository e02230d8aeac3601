#include "queue.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "context.hpp"
#include "endpoint.hpp"
#include "errors.hpp"
#include "shared_receives.hpp"
#include "signals.hpp"

namespace weft::verbs {

namespace {

using namespace std::chrono_literals;

constexpr auto look_again = 10ms;
constexpr std::uint32_t first_queue_entries = 2048;

// In the place of a device's function where reading one queue is not all.
int look_further(ibv_cq* /*queue*/, int /*room*/, ibv_wc* /*entries*/) noexcept { return -1; }

// The same object, where the compiler no longer knows it: it would keep the address of the gate's word in a
// register over the device's call, for which one more has to be saved.
[[gnu::always_inline]] inline Queue& forget_address(Queue& queue) noexcept {
  Queue* pointer = &queue;
  asm("" : "+r"(pointer));
  return *pointer;
}

void watch(int epoll, int descriptor) noexcept {
  epoll_event event{};
  event.events = EPOLLIN;
  epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event);
}

}  // namespace

Queue::Queue(Context& context, std::uint32_t capacity, provider::QueueEvents& events)
    : engine::Queue(context.thread_mode(), capacity, events), context_(context) {
  note_shape();
  channel_.reset(ibv_create_comp_channel(context.fabric().device()));
  if (!channel_)
    fail_call("cannot make a completion channel on device " + context.fabric().port().name, errno,
              "raise the limit of open files (ulimit -n)");
  const int flags = fcntl(channel_->fd, F_GETFL);
  if (flags < 0 || fcntl(channel_->fd, F_SETFL, flags | O_NONBLOCK) != 0)
    fail_call("cannot watch a completion channel", errno);
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  if (epoll_ < 0)
    fail_call("cannot make a completion queue: no epoll descriptor", errno,
              "raise the limit of open files (ulimit -n)");
  watch(epoll_, channel_->fd);
}

Queue::~Queue() {
  context_.forget(*this);
  if (channel_) take_events();
  device_queues_.clear();
  if (epoll_ >= 0) ::close(epoll_);
}

void Queue::driven_by(Queue& other) {
  const engine::HelperEntry entry(other.gate());
  other.rings_only_ = true;
  other.share();
  other.note_shape();
  for (Endpoint* endpoint : other.members_) endpoint->forget_credit();
  if (std::find(other.also_.begin(), other.also_.end(), this) != other.also_.end()) return;
  other.also_.push_back(this);
  other.note_shape();
  watch(other.epoll_, channel_->fd);
}

Queue::Place Queue::attach(Endpoint& endpoint, std::uint32_t entries, SharedReceives* shared) {
  const std::uint32_t shared_depth = shared != nullptr ? shared->device_depth() : 0;
  auto found = std::find_if(device_queues_.begin(), device_queues_.end(), [&](const auto& queue) {
    return queue->has_room(entries, shared, shared_depth);
  });
  if (found == device_queues_.end()) {
    // Each is twice the one before, as far as the device goes: many endpoints stand on few queues.
    const auto most = static_cast<std::uint32_t>(std::max(context_.fabric().port().limits.max_cqe, 1));
    const std::uint32_t needed = entries + shared_depth;
    const std::uint32_t before =
        device_queues_.empty() ? first_queue_entries / 2 : device_queues_.back()->capacity();
    const std::uint32_t wanted = std::max(needed, std::min(most, before * 2));
    device_queues_.push_back(std::make_unique<DeviceQueue>(context_.fabric(), channel_.get(), wanted,
                                                           context_.extended_entries()));
    if (!device_queues_.back()->is_extended()) context_.no_extended_entries();  // not asked for again
    found = std::prev(device_queues_.end());
    note_shape();
    if (armed()) static_cast<void>((*found)->request_notification());
  }
  Place place;
  place.queue = found->get();
  if (free_slots_.empty()) {
    if (slots_.size() >= Tag::slot_limit)
      throw Error(Status::resource_limit, "too many endpoints on one completion queue");
    sends_simply_.resize(slots_.size() + 1);
    receives_simply_.resize(slots_.size() + 1);
    free_slots_.reserve(slots_.size() + 1);
    slots_.push_back(nullptr);
    place.slot = static_cast<std::uint32_t>(slots_.size() - 1);
  } else {
    place.slot = free_slots_.back();
    free_slots_.pop_back();
  }
  slots_[place.slot] = &endpoint;
  place.queue->take_room(entries, shared, shared_depth);
  return place;
}

void Queue::detach(const Place& place, std::uint32_t entries, SharedReceives* shared) noexcept {
  place.queue->give_room(entries, shared, shared != nullptr ? shared->device_depth() : 0);
  slots_[place.slot] = sends_simply_[place.slot] = receives_simply_[place.slot] = nullptr;
  free_slots_.push_back(place.slot);
}

Queue::Out Queue::absorb(const ibv_wc& entry, Out out) noexcept {
  if ((entry.wr_id & Tag::receive) == 0) {
    if (Endpoint* endpoint = slots_[Tag::slot(entry.wr_id)]; endpoint != nullptr)
      endpoint->on_sent(entry, out);
  } else if ((entry.wr_id & Tag::shared) == 0) {
    if (Endpoint* endpoint = slots_[Tag::slot(entry.wr_id)]; endpoint != nullptr)
      endpoint->on_received(entry, out);
  } else {
    const auto found = by_pair_.find(entry.qp_num);
    if (found != by_pair_.end()) found->second->on_shared_received(entry, out);
  }
  return out;
}

// An entry that reports success and gives just one completion, with few instructions. False for any other;
// then nothing has changed.
[[gnu::always_inline]] inline bool Queue::absorb_quickly(const ibv_wc& entry, Completion& to) noexcept {
  if (entry.status != IBV_WC_SUCCESS) [[unlikely]]
    return false;
  const std::uint64_t tag = entry.wr_id;
  if ((tag & Tag::receive) == 0) {
    Endpoint* const endpoint = sends_simply_[Tag::send_slot(tag)];
    return endpoint != nullptr && endpoint->sent_one(Tag::number(tag), to);
  }
  Endpoint* const endpoint = receives_simply_[Tag::slot(tag)];
  return endpoint != nullptr && endpoint->received_one(entry, to);
}

std::size_t Queue::drive(Completion* out, std::size_t room) noexcept {
  // Entries go straight to the caller; a second round finds what came meanwhile, but not without end.
  constexpr int most_rounds = 4;
  const bool direct = room != 0 && !rings_only_;
  Out to;
  if (direct) to = {out, out + room};
  std::array<ibv_wc, batch> entries;
  for (std::size_t i = 0; i < device_queues_.size(); ++i) {
    DeviceQueue& queue = *device_queues_[(first_ + i) % device_queues_.size()];
    for (int round = 0; round < most_rounds; ++round) {
      std::size_t wanted = batch;
      if (direct) wanted = std::min(batch, static_cast<std::size_t>(to.end - to.next));
      if (wanted == 0) break;  // the rest waits in the device's queue, which has room for all of it
      const int count = queue.poll({entries.data(), wanted});
      if (count <= 0) break;
      counts_.add(Count::entries, static_cast<std::uint64_t>(count));
      for (int n = 0; n < count; ++n) to = absorb(entries[static_cast<std::size_t>(n)], to);
      if (static_cast<std::size_t>(count) < wanted) break;
    }
  }
  if (device_queues_.size() > 1) ++first_;
  const auto written = direct ? static_cast<std::size_t>(to.next - out) : 0;
  release(static_cast<std::uint32_t>(written));
  return written;
}

void Queue::drive_all() noexcept {
  constexpr Out to_the_ring{};
  std::array<ibv_wc, batch> entries;
  for (const auto& queue : device_queues_) {
    // Bounded by what the queue can hold: others may go on filling it.
    for (std::uint32_t read = 0; read < queue->capacity();) {
      const int count = queue->poll(entries);
      if (count <= 0) break;
      read += static_cast<std::uint32_t>(count);
      counts_.add(Count::entries, static_cast<std::uint64_t>(count));
      for (int n = 0; n < count; ++n)
        static_cast<void>(absorb(entries[static_cast<std::size_t>(n)], to_the_ring));
    }
  }
}

// Hands out what the entries read last give.
std::size_t Queue::deliver(std::size_t count, Completion* out, std::size_t room) noexcept {
  Out to{out, out + room};
  const ibv_wc* one = entries_.data();
  const ibv_wc* const end = one + count;
  do {
    if (to.next != to.end && absorb_quickly(*one, *to.next)) [[likely]] {
      ++to.next;
    } else {
      to = absorb(*one, to);
    }
  } while (++one != end);
  const auto written = static_cast<std::size_t>(to.next - out);
  release_unshared(static_cast<std::uint32_t>(written));
  return written;
}

// Mostly nothing is left in the ring, there is one device's queue, and it has one entry or none. The rare
// ways out are jumps into functions of their own, so that the common one saves few registers.
template <engine::Gate::Kind kind>
[[gnu::always_inline]] inline std::size_t Queue::poll_as(Completion* out, std::size_t room) noexcept {
  if (!gate().enter_at_once<kind>()) [[unlikely]]
    return poll_slowly(out, room);
  if (has_entries()) [[unlikely]] {
    counts_.add(Count::polls);
    return poll_inside<kind>(out, room);
  }
  // Where there is more to be looked at, the function says so.
  const int count = poll_only_(only_, static_cast<int>(std::min(room, batch)), entries_.data());
  if (count == 1 && absorb_quickly(entries_.front(), *out)) [[likely]] {
    counts_.add(Count::single_entries);
    release_unshared(1);
    forget_address(*this).gate().leave_as<kind>();
    return 1;
  }
  if (count != 0 || room == 0) [[unlikely]]
    return poll_on<kind>(count, out, room);
  return leave_empty<kind>();
}

template <engine::Gate::Kind kind>
std::size_t Queue::leave_empty() noexcept {
  counts_.add(Count::polls);
  gate().leave_as<kind>();
  return 0;
}

// Inside the gate already, with so many entries read.
template <engine::Gate::Kind kind>
std::size_t Queue::poll_on(int count, Completion* out, std::size_t room) noexcept {
  counts_.add(Count::polls);
  if (count <= 0) return poll_inside<kind>(out, room);
  counts_.add(Count::entries, static_cast<std::uint64_t>(count));
  const std::size_t written = deliver(static_cast<std::size_t>(count), out, room);
  if (count == static_cast<int>(batch) && written < room)
    return written + poll_inside<kind>(out + written, room - written);  // there may be more
  gate().leave_as<kind>();
  return written;
}

// Inside the gate already.
template <engine::Gate::Kind kind>
std::size_t Queue::poll_inside(Completion* out, std::size_t room) noexcept {
  const std::size_t count = poll_any(out, room);
  gate().leave_as<kind>();
  return count;
}

std::size_t Queue::poll_slowly(Completion* out, std::size_t room) noexcept {
  const engine::Entry entry(gate());
  counts_.add(Count::polls);
  return poll_any(out, room);
}

std::size_t Queue::poll_any(Completion* out, std::size_t room) noexcept {
  if (inert_) return 0;
  const bool was_armed = pause_signals();
  for (Queue* other : also_) {
    // Not waiting: two queues may drive each other.
    if (!other->gate().try_enter()) continue;
    other->counts_.add(Count::polls);
    static_cast<void>(other->drive(nullptr, 0));
    other->gate().leave();
  }
  std::size_t count = has_entries() ? take(out, room) : 0;
  if (count < room || room == 0) {
    count += drive(out + count, room - count);
    if (count < room && has_entries()) count += take(out + count, room - count);
  }
  if (was_armed) resume_signals();
  return count;
}

// When the short way of poll() can be taken.
void Queue::note_shape() noexcept {
  const bool plain = !inert_ && !rings_only_ && also_.empty() && device_queues_.size() == 1;
  only_ = plain ? device_queues_.front()->get() : nullptr;
  poll_only_ = plain ? device_queues_.front()->poll_function() : &look_further;
}

// Takes the events that made the channel readable.
void Queue::take_events() noexcept {
  ibv_cq* which = nullptr;
  void* unused = nullptr;
  while (ibv_get_cq_event(channel_.get(), &which, &unused) == 0) {
    for (const auto& queue : device_queues_) {
      if (queue->get() == which) queue->note_event();
    }
  }
}

// The next entry of any of the device's queues makes the channel readable. False when that cannot be had.
bool Queue::prepare_to_sleep() noexcept {
  take_events();
  bool prepared = true;
  for (const auto& queue : device_queues_) prepared = queue->request_notification() && prepared;
  static_cast<void>(drive(nullptr, 0));  // what came before the request
  return prepared;
}

bool Queue::arm() noexcept {
  const engine::Entry entry(gate());
  if (inert_) return false;
  counts_.add(Count::polls);
  for (Queue* other : also_) {
    if (!other->gate().try_enter()) return false;  // somebody drives it; look again
    const bool prepared = other->prepare_to_sleep();
    other->gate().leave();
    if (!prepared) return false;
  }
  return prepare_to_sleep() && arm_ring();
}

bool Queue::serve(Clock::time_point now, Clock::time_point& next) noexcept {
  if (!gate().try_enter_helper()) {
    next = std::min(next, now + look_again);
    return false;
  }
  helped_ = true;
  const std::uint64_t polls = counts_.of(Count::polls) + counts_.of(Count::single_entries);
  const bool away = polls == seen_polls_;
  seen_polls_ = polls;
  if (away) drive_all();
  for (SharedReceives* shared : shared_) {
    if (!shared->push_waiting()) next = std::min(next, now + look_again);
  }
  // An endpoint that ends leaves the list of those with a pair, not this one.
  Endpoint* ended = nullptr;
  for (Endpoint* endpoint : members_) {
    next = std::min(next, endpoint->serve(now));
    if (!endpoint->leaves_pair()) continue;
    if (ended != nullptr) next = now;  // one a round, so that nobody waits for all of them
    ended = endpoint;
  }
  if (ended != nullptr) ended->release_pair();
  helped_ = false;
  gate().leave_helper();
  return true;
}

Counts Queue::all_counts() const noexcept {
  Counts sums = counts_;
  for (const Endpoint* endpoint : members_) endpoint->add_counts(sums);
  return sums;
}

void Queue::forget_region(std::uint64_t token) noexcept {
  for (Endpoint* endpoint : members_) endpoint->forget_region(token);
}

void Queue::enter_child() noexcept {
  inert_ = true;
  note_shape();
  gate().reset();
  for (Endpoint* endpoint : members_) endpoint->enter_child();
  for (SharedReceives* shared : shared_) shared->enter_child();
  for (const auto& queue : device_queues_) queue->leave_to_parent();
  if (channel_) ::close(channel_->fd);
  static_cast<void>(channel_.release());
  ::close(epoll_);
  epoll_ = -1;
}

namespace {

// Polling for one kind of gate: single, or safe.
template <engine::Gate::Kind kind>
class QueueAs final : public Queue {
 public:
  QueueAs(Context& context, std::uint32_t capacity, provider::QueueEvents& events)
      : Queue(context, capacity, events) {}
  std::size_t poll(Completion* out, std::size_t room) noexcept override { return poll_as<kind>(out, room); }
};

}  // namespace

std::unique_ptr<Queue> Queue::make(Context& context, std::uint32_t capacity, provider::QueueEvents& events) {
  using Kind = engine::Gate::Kind;
  if (context.thread_mode() == ThreadMode::safe)
    return std::make_unique<QueueAs<Kind::locked>>(context, capacity, events);
  if (engine::asymmetric_barrier_available())
    return std::make_unique<QueueAs<Kind::announced>>(context, capacity, events);
  return std::make_unique<QueueAs<Kind::fenced>>(context, capacity, events);
}

}  // namespace weft::verbs
