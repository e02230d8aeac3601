#include "helped_queue.hpp"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "helped_context.hpp"
#include "limit_text.hpp"

namespace weft::engine {

HelpedQueue::HelpedQueue(HelpedContext& context, std::uint32_t capacity, provider::QueueEvents& events)
    : Group(context.thread_mode(), capacity, events),
      context_(context),
      epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  if (epoll_ < 0) {
    throw Error(Status::resource_limit,
                "cannot make a completion queue: no epoll descriptor: " + descriptor_error_text(errno));
  }
  context_.add_group(*this);
}

HelpedQueue::~HelpedQueue() {
  leave_helper_alone();
  context_.remove_group(*this);
  if (epoll_ >= 0) ::close(epoll_);
}

void HelpedQueue::leave_helper_alone() noexcept { context_.forget(*this); }

void HelpedQueue::wake_helper() noexcept {
  helper_sleeps_.store(false, std::memory_order_relaxed);
  context_.request_service();
}

void HelpedQueue::want_helper_soon() noexcept {
  helper_sleeps_.store(false, std::memory_order_relaxed);
  context_.request_service();
}

void HelpedQueue::driven_by(HelpedQueue& other) {
  {
    const HelperEntry entry(gate());
    if (std::find(drivers_.begin(), drivers_.end(), &other) != drivers_.end()) return;
    drivers_.push_back(&other);
    watch_in(other.epoll_);  // under this queue's gate: what it watches may change
  }
  const HelperEntry entry(other.gate());
  other.also_.push_back(this);
}

void HelpedQueue::part_from(HelpedQueue& other) noexcept {
  const HelperEntry entry(gate());
  std::erase(also_, &other);
  std::erase(drivers_, &other);
}

bool HelpedQueue::slept_on() const noexcept {
  return armed() || std::any_of(drivers_.begin(), drivers_.end(),
                                [](const HelpedQueue* driver) { return driver->armed(); });
}

void HelpedQueue::wake_sleepers() noexcept {
  wake_sleeper();
  for (HelpedQueue* driver : drivers_) driver->wake_sleeper();
}

void HelpedQueue::drive_others() noexcept {
  for (HelpedQueue* other : also_) {
    // Not waiting: two queues may drive each other.
    if (!other->gate().try_enter()) continue;
    other->note_activity();
    other->drive(other->armed());
    if (other->armed()) other->drove_beside_sleeper();
    other->gate().leave();
  }
}

bool HelpedQueue::prepare_others() noexcept {
  bool ready = true;
  for (HelpedQueue* other : also_) {
    if (!other->gate().try_enter()) {
      ready = false;  // somebody drives it, and may leave it unprepared
      continue;
    }
    ready = other->prepare_sleep() && ready;
    other->gate().leave();
  }
  return ready;
}

bool HelpedQueue::send_held_back() noexcept {
  if (!gate().try_enter_helper()) return true;
  release_held_back();
  gate().leave_helper();
  return false;
}

void HelpedQueue::close_in_child() noexcept {
  ::close(epoll_);
  epoll_ = -1;
}

}  // namespace weft::engine
