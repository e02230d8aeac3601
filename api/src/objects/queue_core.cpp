#include "objects/queue_core.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <utility>

#include "bootstrap/signal_block.hpp"
#include "bootstrap/socket.hpp"

namespace weft::core {

namespace {

using std::chrono::milliseconds;

// How soon to look again where there is nothing to sleep on.
constexpr milliseconds look_again{1};

[[noreturn]] void cannot_make(const char* what, int error) {
  throw Error(Status::resource_limit,
              std::string("cannot make the completion queue's ") + what + ": " + errno_text(error));
}

void pause() noexcept {
  const timespec time{0, std::chrono::nanoseconds(look_again).count()};
  (void)::nanosleep(&time, nullptr);
}

void add(int epoll, int descriptor) {
  epoll_event event{};
  event.events = EPOLLIN;
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) != 0) cannot_make("epoll descriptor", errno);
}

}  // namespace

QueueCore::QueueCore(ContextCore& context, std::uint32_t capacity) : context_(context), capacity_(capacity) {
  const SignalBlock block;
  provider_ = context.provider().create_completion_queue(capacity, *this);
  path_.provider = provider_.get();
  path_.needs_care = context.when_called();
  path_.unusable = &context.unusable();
}

QueueCore::~QueueCore() = default;

std::size_t QueueCore::take_with_care(std::span<Completion> entries) noexcept {
  if (context_.is_inert()) return 0;  // in a child: the parent's thread may hold the lock for ever
  if (context_.when_called()) context_.assist();
  std::size_t count = 0;
  if (has_reports_.load(std::memory_order_relaxed)) count = take_reports(entries);
  return count + provider_->poll(entries.data() + count, entries.size() - count);
}

void QueueCore::note_reports() noexcept {
  const bool any = !reports_.empty();
  has_reports_.store(any);
  path_.needs_care.store(any || context_.when_called(), std::memory_order_relaxed);
}

std::size_t QueueCore::take_reports(std::span<Completion> entries) noexcept {
  const std::lock_guard guard(mutex_);
  const std::size_t count = std::min(entries.size(), reports_.size());
  for (std::size_t i = 0; i < count; ++i) {
    entries[i] = reports_.front().completion;
    reports_.pop_front();
  }
  note_reports();
  return count;
}

void QueueCore::report(const Completion& report, const void* owner) {
  const std::lock_guard guard(mutex_);
  reports_.push_back({report, owner});
  note_reports();
  signal_locked();
}

bool QueueCore::take_back(const void* owner) noexcept {
  const std::lock_guard guard(mutex_);
  const std::size_t taken = std::erase_if(reports_, [owner](const Report& r) { return r.owner == owner; });
  note_reports();
  return taken != 0;
}

void QueueCore::wake() noexcept {
  const std::lock_guard guard(mutex_);
  // One for each waiter, and one to keep when nobody waits.
  wakes_ = std::min(wakes_ + 1, std::max(waiters_, 1U));
  has_wakes_.store(true, std::memory_order_relaxed);
  signal_locked();
}

bool QueueCore::take_wake() noexcept {
  if (!has_wakes_.load(std::memory_order_relaxed)) return false;
  const std::lock_guard guard(mutex_);
  if (wakes_ == 0) return false;
  --wakes_;
  has_wakes_.store(wakes_ != 0, std::memory_order_relaxed);
  return true;
}

void QueueCore::readable() noexcept {
  const std::lock_guard guard(mutex_);
  signal_locked();
}

void QueueCore::close() noexcept {
  const std::lock_guard guard(mutex_);
  signal_locked();
}

void QueueCore::signal_locked() noexcept {
  if (!event_ || signalled_.exchange(true)) return;
  const std::uint64_t one = 1;
  while (::write(event_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
}

void QueueCore::make_descriptor() {
  const int provider_descriptor =
      provider_->descriptor();  // the provider calls readable() with its locks held
  const std::lock_guard guard(mutex_);
  if (descriptor_.load() >= 0) return;
  Descriptor epoll = Descriptor::from([] { return ::epoll_create1(EPOLL_CLOEXEC); });
  if (!epoll) cannot_make("epoll descriptor", errno);
  Descriptor event = Descriptor::from([] { return ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); });
  if (!event) cannot_make("event descriptor", errno);
  add(epoll.get(), event.get());
  if (provider_descriptor >= 0) add(epoll.get(), provider_descriptor);
  // Without a helper thread the descriptor must also tell that there is work to do inside a call (PRG-6).
  if (context_.when_called()) add(epoll.get(), context_.service().descriptor());
  epoll_ = std::move(epoll);
  event_ = std::move(event);
  descriptor_.store(epoll_.get());
  signal_locked();  // what was reported before is not lost
}

int QueueCore::descriptor() {
  if (descriptor_.load() < 0) make_descriptor();
  return descriptor_.load();
}

bool QueueCore::arm() noexcept {
  if (!is_usable()) return false;
  if (descriptor_.load() < 0) {
    try {
      make_descriptor();
    } catch (const std::exception&) {
      return false;
    }
  }
  const auto is_something_there = [this] { return has_reports_.load() || has_wakes_.load() || !is_usable(); };
  if (is_something_there()) return false;  // the descriptor stays readable
  if (signalled_.load()) {
    const std::lock_guard guard(mutex_);
    std::uint64_t count = 0;
    while (::read(event_.get(), &count, sizeof count) < 0 && errno == EINTR) {
    }
    signalled_.store(false);
    // What came meanwhile has found the descriptor readable and now would not be seen.
    if (is_something_there()) signal_locked();
  }
  if (is_something_there()) return false;
  return provider_->arm();
}

Polled QueueCore::wait(std::span<Completion> entries, std::chrono::nanoseconds timeout) noexcept {
  using Reason = Polled::Reason;
  const auto result = [&entries](std::size_t count, Reason reason) {
    return Polled(entries.data(), count, reason);
  };
  const Service::Time deadline = timeout < std::chrono::nanoseconds::zero()
                                     ? Service::Time::max()
                                     : after(Service::Clock::now(), timeout);
  struct Waiting {
    explicit Waiting(QueueCore& queue) : queue_(queue) {
      const std::lock_guard guard(queue_.mutex_);
      ++queue_.waiters_;
    }
    ~Waiting() {
      const std::lock_guard guard(queue_.mutex_);
      --queue_.waiters_;
    }
    QueueCore& queue_;
  };
  std::size_t count = take(entries);
  if (count > 0) return result(count, Reason::completions);
  if (!is_usable()) return result(0, Reason::failed);
  const Waiting waiting(*this);
  for (int refusals = 0;;) {
    if (take_wake()) return result(0, Reason::woken);
    if (Service::Clock::now() >= deadline) return result(0, Reason::timeout);
    if (arm()) {
      refusals = 0;
      sleep(deadline);
    } else if (++refusals > 100) {
      pause();  // no descriptor can be made, or a provider is at odds with itself
    }
    if (context_.when_called()) context_.service().step(std::chrono::nanoseconds::zero());
    count = take(entries);
    if (count > 0) return result(count, Reason::completions);
    if (!is_usable()) return result(0, Reason::failed);
    if (entries.empty() && has_reports_.load()) return result(0, Reason::empty);
  }
}

void QueueCore::sleep(Service::Time until) noexcept {
  if (context_.when_called()) until = std::min(until, context_.service().next_time());
  int milliseconds_left = -1;
  if (until != Service::Time::max()) {
    const auto left = std::chrono::ceil<milliseconds>(until - Service::Clock::now()).count();
    milliseconds_left = static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000));
  }
  const int descriptor = descriptor_.load();
  epoll_event event{};
  if (::epoll_wait(descriptor, &event, 1, milliseconds_left) < 0 && errno != EINTR) pause();
}

}  // namespace weft::core
