#include "machine.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>
#include <sys/utsname.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <thread>

namespace perf {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds probe_time{2};
constexpr std::size_t cache_line = 64;

void pin_this_thread(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(core), &set);
  ::pthread_setaffinity_np(::pthread_self(), sizeof set,
                           &set);  // A probe that cannot pin still tells something.
}

struct alignas(cache_line) Ball {
  std::atomic<std::uint32_t> number{0};  // Odd: the answering thread has to move. Even: the asking one.
  std::atomic<bool> over{false};
};

std::string first_value(const char* file, const std::string& key) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    if (line.compare(0, key.size(), key) != 0) continue;
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

}  // namespace

Cores choose_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> usable;
  if (::sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(static_cast<std::size_t>(core), &set)) usable.push_back(core);
    }
  }
  if (usable.size() < 2) {
    throw std::runtime_error(
        "this process may use only one processor core; both sides of a measurement spin, so two are needed "
        "(see "
        "taskset, or give the virtual machine a second core)");
  }
  return {usable[0], usable[1]};
}

double probe_cores(const Cores& cores) {
  Ball ball;
  std::thread answering([&] {
    pin_this_thread(cores.server);
    while (!ball.over.load(std::memory_order_relaxed)) {
      const std::uint32_t seen = ball.number.load(std::memory_order_acquire);
      if (seen % 2 == 1) ball.number.store(seen + 1, std::memory_order_release);
    }
  });
  double best = std::numeric_limits<double>::infinity();
  std::thread asking([&] {
    pin_this_thread(cores.client);
    constexpr int rounds = 100;
    std::uint32_t number = 0;
    const Clock::time_point end = Clock::now() + probe_time;
    // The fastest stretch counts: the others met an interrupt or another program. The first one counts even
    // when it takes longer than the probe should.
    for (Clock::time_point start = Clock::now(); start < end;) {
      int round = 0;
      for (; round < rounds && Clock::now() < end; ++round) {
        ball.number.store(number + 1, std::memory_order_release);
        number += 2;
        while (ball.number.load(std::memory_order_acquire) != number) {
        }
      }
      const Clock::time_point now = Clock::now();
      best = std::min(best, std::chrono::duration<double, std::micro>(now - start).count() / round / 2);
      start = now;
    }
    ball.over.store(true, std::memory_order_relaxed);
  });
  asking.join();
  answering.join();
  return best;
}

std::string state_text(const std::vector<double>& probes) {
  const auto any = [&](double from, double to) {
    return std::any_of(probes.begin(), probes.end(),
                       [=](double probe) { return from <= probe && probe < to; });
  };
  const bool near = any(0, near_limit);
  const bool far = any(near_limit, far_limit);
  std::string text = near && far ? "near and far" : near ? "near" : far ? "far" : "";
  if (!any(far_limit, std::numeric_limits<double>::infinity())) return text.empty() ? "unknown" : text;
  return text + (text.empty() ? "" : ", ") + "disturbed by other programs";
}

Machine describe_machine() {
  Machine machine;
  machine.processor = first_value("/proc/cpuinfo", "model name");
  machine.processors = std::thread::hardware_concurrency();
  utsname names{};
  if (::uname(&names) == 0) machine.kernel = fmt::format("{} {}", names.sysname, names.release);
#if defined(__clang__)
  machine.compiler = fmt::format("clang {}.{}", __clang_major__, __clang_minor__);
#elif defined(__GNUC__)
  machine.compiler = fmt::format("gcc {}.{}", __GNUC__, __GNUC_MINOR__);
#endif
#if defined(__OPTIMIZE__)
  machine.build = "optimized";
#else
  machine.build = "not optimized";
#endif
  double load = 0;
  if (::getloadavg(&load, 1) == 1) machine.load = load;
  machine.time = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  return machine;
}

}  // namespace perf
