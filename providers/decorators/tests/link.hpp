// A context of a decorated provider connected to itself, and what its log says.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "weft/weft.hpp"

namespace weft::decorator_tests {

using namespace std::chrono_literals;

// A variable that is set while it lives; it must be set before a context is opened.
class Variable {
 public:
  Variable(std::string name, const std::string& value) : name_(std::move(name)) {
    ::setenv(name_.c_str(), value.c_str(), 1);
  }
  ~Variable() { ::unsetenv(name_.c_str()); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const std::string name_;
};

class LogLines {
 public:
  explicit LogLines(LogLevel level) : before_(log_level()) {
    set_log_level(level);
    set_log_sink([this](LogLevel, std::string_view line) {
      const std::lock_guard lock(mutex_);
      lines_.emplace_back(line);
    });
  }
  ~LogLines() {
    set_log_sink({});
    set_log_level(before_);
  }
  LogLines(const LogLines&) = delete;
  LogLines& operator=(const LogLines&) = delete;

  // Those that hold the text.
  [[nodiscard]] std::vector<std::string> with(std::string_view text) const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> found;
    for (const std::string& line : lines_) {
      if (line.find(text) != std::string::npos) found.push_back(line);
    }
    return found;
  }

 private:
  const LogLevel before_;
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

struct Link {
  explicit Link(const std::string& provider, std::uint32_t capacity = 256,
                ThreadMode mode = ThreadMode::safe) {
    ContextOptions options;
    options.provider = provider;
    options.thread_mode = mode;
    context = Context::open(options);
    near_queue = context.create_completion_queue({.capacity = capacity});
    far_queue = context.create_completion_queue({.capacity = capacity});
    region = context.register_memory(memory, all);
    listener = context.listen("127.0.0.1:0", {.queue = far_queue});
    connect();
  }

  void connect() {
    EndpointOptions options;
    options.queue = near_queue;
    near = context.connect(listener.address(), options);
    (void)next(far_queue, Operation::connection_request);
    options.queue = far_queue;
    far = listener.next()->accept(options);
    near.wait_up(5s);
    far.wait_up(5s);
  }

  // The next entry of the operation; others are dropped. An `unknown` one when none comes in time.
  static Completion next(CompletionQueue& queue, Operation wanted, std::chrono::milliseconds time = 10s) {
    const auto end = std::chrono::steady_clock::now() + time;
    std::array<Completion, 1> room;
    while (std::chrono::steady_clock::now() < end) {
      for (const Completion& entry : queue.wait(room, 20ms)) {
        if (entry.operation == wanted) return entry;
      }
    }
    ADD_FAILURE() << "no " << to_string(wanted) << " came";
    return {};
  }
  Completion sent() { return next(near_queue, Operation::send); }
  Completion received() { return next(far_queue, Operation::receive); }

  // One message that arrives.
  void ping() {
    ASSERT_EQ(far.receive(region.slice(0, 64), 1), Status::ok);
    Status posted = Status::again;
    for (int i = 0; i < 100'000 && posted == Status::again; ++i) posted = near.send(region.slice(64, 64), 2);
    ASSERT_EQ(posted, Status::ok);
    EXPECT_EQ(received().status, Status::ok);
    EXPECT_EQ(sent().status, Status::ok);
  }

  [[nodiscard]] std::uint64_t counter(std::string_view name) const {
    for (const Counter& counter : context.counters()) {
      if (counter.name == name) return counter.value;
    }
    ADD_FAILURE() << "no counter " << name;
    return 0;
  }

  static constexpr Access all =
      Access::local_write | Access::remote_read | Access::remote_write | Access::remote_atomic;
  static constexpr std::size_t size = std::size_t{2} << 20;
  std::vector<std::byte> memory = std::vector<std::byte>(size);
  Context context;
  CompletionQueue near_queue;
  CompletionQueue far_queue;
  MemoryRegion region;
  Listener listener;
  Endpoint near;
  Endpoint far;
};

}  // namespace weft::decorator_tests
