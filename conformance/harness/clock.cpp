#include "harness/clock.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>
#include <thread>

namespace conformance {
namespace {

constexpr Duration tick = 5ms;
constexpr Duration usual_lateness = 1ms;
// One thread that is late stands for several that are: both sides, their helpers, the kernel's.
constexpr int stretch = 4;

std::atomic<std::int64_t> stall{0};
std::optional<clockid_t> canary_clock;

[[noreturn]] void watch() {
  pthread_setname_np(pthread_self(), "canary");
  while (true) {
    const auto begin = Clock::now();
    std::this_thread::sleep_for(tick);
    const Duration late = Clock::now() - begin - tick;
    if (late > usual_lateness) stall.fetch_add(late.count(), std::memory_order_relaxed);
  }
}

// How long threads of this process were ready and not run, all together: what one thread cannot see of the
// others.
Duration held_up_so_far() {
  Duration all{0};
  std::error_code error;
  const auto tasks = std::filesystem::directory_iterator("/proc/self/task", error);
  for (auto task = begin(tasks); task != end(tasks); task.increment(error)) {
    std::ifstream statistics(task->path() / "schedstat");
    std::int64_t ran = 0;
    std::int64_t waited = 0;
    if (statistics >> ran >> waited) all += Duration(waited);
    if (error) break;
  }
  return all;
}

}  // namespace

void start_canary() {
  std::thread thread(watch);
  clockid_t clock{};
  if (pthread_getcpuclockid(thread.native_handle(), &clock) == 0) canary_clock = clock;
  thread.detach();
}

Duration canary_processor_time() {
  timespec time{};
  if (!canary_clock || clock_gettime(*canary_clock, &time) != 0) return Duration{0};
  return std::chrono::seconds(time.tv_sec) + Duration(time.tv_nsec);
}

Duration stall_so_far() { return Duration(stall.load(std::memory_order_relaxed)); }

Deadline::Deadline(Duration from_now)
    : begin_(Clock::now()), length_(from_now), stall_at_begin_(stall_so_far()) {}

Clock::time_point Deadline::end() const {
  // However busy the machine is, what hangs must be found out some day.
  const Duration most = 2 * length_ + 10s;
  return begin_ + length_ + std::min<Duration>(most, stretch * (stall_so_far() - stall_at_begin_));
}

bool Deadline::passed() const { return Clock::now() >= end(); }

Duration Deadline::left() const {
  const Duration left = end() - Clock::now();
  return left.count() > 0 ? left : Duration::zero();
}

Stopwatch::Stopwatch()
    : begin_(Clock::now()), stall_at_begin_(stall_so_far()), held_up_at_begin_(held_up_so_far()) {}

Duration Stopwatch::elapsed() const { return Clock::now() - begin_; }

Duration Stopwatch::without_stalls() const {
  const Duration elapsed = this->elapsed();
  return elapsed - std::max<Duration>(stretch * (stall_so_far() - stall_at_begin_),
                                      held_up_so_far() - held_up_at_begin_);
}

void pause(Duration time) { std::this_thread::sleep_for(time); }

}  // namespace conformance
