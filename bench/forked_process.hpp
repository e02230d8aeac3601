// A child process with a channel to it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "channel.hpp"

namespace perf {

/// Forks; the calling process must have no other threads. Never outlives the process that made it.
class ForkedProcess {
 public:
  static constexpr std::chrono::seconds usual_time{20};

  /// Does `work` with its end of the channel, on `core` if one is given. What `work` throws comes back as
  /// Message::failed. `role` names it in errors.
  ForkedProcess(std::string role, std::optional<int> core, const std::function<void(Channel&)>& work);
  ForkedProcess(const ForkedProcess&) = delete;
  ForkedProcess& operator=(const ForkedProcess&) = delete;
  /// Tells it to leave, and makes it if it does not.
  ~ForkedProcess();

  /// Never fails: a worker that is gone has left word on the channel, and expect() reports that.
  void send(Message kind, const std::string& payload = {}) noexcept;

  /// The payload of the next message, which must be of this kind. Throws std::runtime_error with the
  /// process's own words when it failed, is gone or does not answer in time.
  [[nodiscard]] std::string expect(Message kind, std::chrono::seconds time = usual_time);

  /// The process it works with failed, and it may be spinning for that one: it will be killed. If it failed
  /// too, its words come back, as they may well be the cause.
  [[nodiscard]] std::string give_up();

 private:
  std::string role_;
  pid_t pid_ = -1;
  std::unique_ptr<Channel> channel_;
  bool failed_ = false;
};

/// What `work` returns when it is done in a process of its own; throws std::runtime_error with its words when
/// it throws.
[[nodiscard]] std::string in_child_process(const std::function<std::string()>& work);

}  // namespace perf
