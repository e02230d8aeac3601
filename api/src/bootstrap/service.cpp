#include "bootstrap/service.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <array>

#include "bootstrap/socket.hpp"
#include "log.hpp"
#include "thread.hpp"

namespace weft::core {

namespace {

constexpr Service::Watch waker_watch = 1;
constexpr Service::Watch provider_watch = 2;
constexpr Service::Watch first_watch = 16;
// A provider that asks to be called again within this time asks to be left alone until then: its program is
// polling, and a descriptor that is readable meanwhile is no reason to disturb it.
constexpr std::chrono::milliseconds left_alone{15};
constexpr std::chrono::milliseconds assist_interval{1};

using std::chrono::nanoseconds;

}  // namespace

Service::Service(provider::Context& provider, std::shared_ptr<ContextBell> bell,
                 std::function<void()> after_events)
    : provider_(provider),
      bell_(std::move(bell)),
      waker_(*bell_->waker()),
      after_events_(std::move(after_events)),
      epoll_(Descriptor::from([] { return ::epoll_create1(EPOLL_CLOEXEC); })),
      last_watch_(first_watch) {
  if (!epoll_) throw Error(status_of_errno(errno), "cannot make an epoll descriptor: " + errno_text(errno));
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = waker_watch;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, waker_.descriptor(), &event) != 0) {
    throw Error(status_of_errno(errno), "cannot watch the event descriptor: " + errno_text(errno));
  }
  provider_descriptor_ = provider_.service_descriptor();
  if (provider_descriptor_ < 0) return;
  event.events = 0;
  event.data.u64 = provider_watch;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, provider_descriptor_, &event) != 0) {
    throw Error(status_of_errno(errno), "cannot watch the provider's descriptor: " + errno_text(errno));
  }
}

Service::~Service() { stop(); }

Service::Watch Service::watch(int descriptor, std::uint32_t events, std::shared_ptr<Handler> handler) {
  const Watch watch = ++last_watch_;
  entries_.emplace(watch, Entry{descriptor, std::move(handler)});
  epoll_event event{};
  event.events = events;
  event.data.u64 = watch;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0) {
    const int error = errno;
    entries_.erase(watch);
    throw Error(status_of_errno(error), "cannot watch a descriptor with epoll: " + errno_text(error));
  }
  return watch;
}

void Service::change(Watch watch, std::uint32_t events) {
  const auto found = entries_.find(watch);
  if (found == entries_.end()) return;
  epoll_event event{};
  event.events = events;
  event.data.u64 = watch;
  (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, found->second.descriptor, &event);
}

void Service::unwatch(Watch& watch) noexcept {
  const auto found = entries_.find(watch);
  watch = 0;
  if (found == entries_.end()) return;
  (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, found->second.descriptor, nullptr);
  entries_.erase(found);
}

Timers::Id Service::add_timer(nanoseconds from_now, std::function<void()> action) {
  const Time when = after(Clock::now(), from_now);
  const Timers::Id id = timers_.add(when, std::move(action));
  if (when < sleeps_until_) waker_.wake();
  return id;
}

bool Service::wait_until(std::unique_lock<std::mutex>& lock, Time deadline,
                         const std::function<bool()>& done) {
  if (has_helper()) {
    // wait_until of an absurdly late time overflows inside the standard library.
    const Time until = std::min(deadline, Clock::now() + std::chrono::hours(24 * 365));
    (void)changed_.wait_until(lock, until, [&] { return done() || !has_helper(); });
  }
  while (!done()) {
    const Time now = Clock::now();
    if (now >= deadline) return false;
    lock.unlock();
    // Not for long: another thread's call may be what `done` waits for.
    step(std::min<nanoseconds>(deadline - now, std::chrono::milliseconds(10)));
    lock.lock();
  }
  return true;
}

void Service::start() {
  helper_ = start_thread("weft-helper", [this] { run(); });
  has_helper_ = true;
}

void Service::stop() {
  if (!helper_.joinable()) return;
  stopping_ = true;
  waker_.wake();
  helper_.join();
  {
    const std::lock_guard guard(mutex_);
    has_helper_ = false;
  }
  changed_.notify_all();
}

void Service::run() noexcept {
  while (!stopping_) step(nanoseconds::max());
}

void Service::step(nanoseconds at_most) {
  const std::lock_guard one_at_a_time(step_mutex_);
  try {
    round(at_most);
  } catch (const std::exception& error) {
    log(LogLevel::error, "the helper's round failed and goes on: {}", error.what());
  }
}

void Service::assist() noexcept {
  const Time now = Clock::now();
  const Time::rep last = last_assist_.load(std::memory_order_relaxed);
  if (now.time_since_epoch().count() - last < Clock::duration(assist_interval).count()) return;
  const std::unique_lock one_at_a_time(step_mutex_, std::try_to_lock);
  if (!one_at_a_time) return;
  last_assist_.store(now.time_since_epoch().count(), std::memory_order_relaxed);
  try {
    round(nanoseconds::zero());
  } catch (const std::exception& error) {
    log(LogLevel::error, "a round of progress failed and will be tried again: {}", error.what());
  }
}

Service::Time Service::next_time() {
  const std::lock_guard steps(step_mutex_);
  const std::lock_guard guard(mutex_);
  return std::min(timers_.next(), provider_time_);
}

int Service::sleep_time(Time now, nanoseconds at_most) {
  const std::lock_guard guard(mutex_);
  sleeps_until_ = std::min({timers_.next(), provider_time_, after(now, at_most)});
  if (sleeps_until_ == Time::max()) return -1;
  if (sleeps_until_ <= now) return 0;
  // Rounded up, so that a time that is nearly come is not waited for in a circle.
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(sleeps_until_ - now).count();
  return static_cast<int>(std::min<std::int64_t>(milliseconds, 1'000'000));
}

void Service::round(nanoseconds at_most) {
  arm_provider();
  std::array<epoll_event, 64> events;
  const int timeout = sleep_time(Clock::now(), at_most);
  const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout);
  {
    const std::lock_guard guard(mutex_);
    sleeps_until_ = Time::min();
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      if (event.data.u64 == waker_watch) {
        waker_.clear();
      } else if (event.data.u64 == provider_watch) {
        provider_ready_ = true;
        provider_armed_ = false;  // one shot
      } else {
        dispatch(event.data.u64, event.events);
      }
    }
    run_timers(Clock::now());
    after_events_();
  }
  serve_provider(Clock::now());
  arm_provider();  // also here, because with `when_called` the program may now sleep on descriptor()
}

void Service::dispatch(Watch watch, std::uint32_t events) noexcept {
  const auto found = entries_.find(watch);
  if (found == entries_.end()) return;  // given up earlier in this round
  const std::shared_ptr<Handler> handler = found->second.handler;
  try {
    handler->on_ready(events);
  } catch (const std::exception& error) {
    handler->on_fault(error.what());
  }
}

void Service::run_timers(Time now) noexcept {
  while (const auto action = timers_.take_due(now)) {
    try {
      action();
    } catch (const std::exception& error) {
      log(LogLevel::error, "a deadline could not be acted on: {}", error.what());
    }
  }
}

void Service::serve_provider(Time now) {
  const bool requested = bell_->take_request();
  if (!provider_ready_ && !requested && now < provider_time_) return;
  provider_ready_ = false;
  const Time next = provider_.service(now);
  const std::lock_guard guard(mutex_);
  provider_time_ = next;
}

void Service::arm_provider() noexcept {
  if (provider_descriptor_ < 0 || provider_armed_) return;
  const Time now = Clock::now();
  if (provider_time_ > now && provider_time_ <= now + left_alone) return;
  epoll_event event{};
  event.events = EPOLLIN | EPOLLONESHOT;
  event.data.u64 = provider_watch;
  provider_armed_ = ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, provider_descriptor_, &event) == 0;
}

}  // namespace weft::core
