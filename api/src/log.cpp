#include "log.hpp"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <mutex>
#include <new>

#include "environment.hpp"
#include "text.hpp"

namespace weft {
namespace core {
namespace {

constexpr int not_read_yet = -1;

struct Logger {
  std::atomic<int> level{not_read_yet};
  std::atomic<bool> has_sink{false};
  std::mutex sink_mutex;  // held while the sink runs: one call at a time
  std::function<void(LogLevel, std::string_view)> sink;
};

// Never destroyed: static destructors of the program and helper threads may still log.
Logger& logger() noexcept {
  alignas(Logger) static std::byte storage[sizeof(Logger)];
  static Logger& instance = *::new (static_cast<void*>(storage)) Logger;
  return instance;
}

// A sink that logs through weft would wait for itself; such a line goes nowhere.
thread_local bool is_in_sink = false;

int level_from_environment() noexcept {
  try {
    return static_cast<int>(environment::log_level().value_or(LogLevel::warning));
  } catch (...) {
    // Context::open reports the bad value; here there is nobody to tell.
    return static_cast<int>(LogLevel::warning);
  }
}

int current_level() noexcept {
  Logger& log = logger();
  int level = log.level.load(std::memory_order_relaxed);
  if (level != not_read_yet) return level;
  // A level the program sets meanwhile wins.
  const int from_environment = level_from_environment();
  if (log.level.compare_exchange_strong(level, from_environment)) return from_environment;
  return level;
}

// One write of one line, so that lines of several threads and processes do not mix. No lock: a forked child
// may use it too.
void write_to_standard_error(LogLevel level, std::string_view line) {
  const std::string text = fmt::format("weft: {}: {}\n", to_text(level), line);
  // Whether standard error takes it is not our business; a closed one must not disturb the program.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace

bool logs(LogLevel level) noexcept {
  return level != LogLevel::off && static_cast<int>(level) >= current_level();
}

void write_log(LogLevel level, std::string_view line) noexcept {
  const int errno_before = errno;
  try {
    const std::string clean = one_line(line);
    Logger& log = logger();
    if (!log.has_sink.load(std::memory_order_acquire)) {
      write_to_standard_error(level, clean);
    } else if (!is_in_sink) {
      const std::lock_guard lock(log.sink_mutex);
      if (log.sink) {
        is_in_sink = true;
        try {
          log.sink(level, clean);
        } catch (...) {
          // The sink is the program's; a failure in it must not end an operation of weft.
        }
        is_in_sink = false;
      } else {
        write_to_standard_error(level, clean);
      }
    }
  } catch (...) {
    // Out of memory: the line is lost, the program goes on.
  }
  errno = errno_before;
}

}  // namespace core

void set_log_level(LogLevel level) {
  core::logger().level.store(static_cast<int>(level), std::memory_order_relaxed);
}

LogLevel log_level() noexcept { return static_cast<LogLevel>(core::current_level()); }

void set_log_sink(std::function<void(LogLevel, std::string_view line)> sink) {
  core::Logger& log = core::logger();
  {
    const std::lock_guard lock(log.sink_mutex);
    log.has_sink.store(static_cast<bool>(sink), std::memory_order_release);
    log.sink.swap(sink);
  }
  // The old sink is destroyed here, without the lock: its destructor is the program's.
}

}  // namespace weft
