#include "forked_process.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace perf {
namespace {

constexpr std::chrono::seconds leave_time{3};
constexpr std::chrono::milliseconds last_words_time{300};

void pin_to(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(core), &set);
  if (::sched_setaffinity(0, sizeof set, &set) != 0) {
    throw std::system_error(errno, std::generic_category(), fmt::format("pin to core {}", core));
  }
}

int in_child(int descriptor, std::optional<int> core, const std::function<void(Channel&)>& work) {
  Channel channel(descriptor);
  try {
    try {
      if (core) pin_to(*core);
      work(channel);
      return 0;
    } catch (const std::exception& error) {
      channel.send(Message::failed, error.what());
    }
  } catch (const std::exception&) {
    // The parent is gone or has stopped listening: nobody is left to tell.
  }
  return 1;
}

}  // namespace

ForkedProcess::ForkedProcess(std::string role, std::optional<int> core,
                             const std::function<void(Channel&)>& work)
    : role_(std::move(role)) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw std::system_error(errno, std::generic_category(), "socketpair");
  }
  std::fflush(nullptr);  // What is still buffered must not be printed twice.
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (pid_ == 0) {
    ::close(ends[0]);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // A spinning process must not outlive the one that started it.
    if (::getppid() != parent) ::_exit(1);
    ::_exit(in_child(ends[1], core, work));
  }
  ::close(ends[1]);
  channel_ = std::make_unique<Channel>(ends[0]);
}

ForkedProcess::~ForkedProcess() {
  send(Message::leave);  // Closing the channel would not do: a later fork may hold a copy of this end.
  const auto deadline = std::chrono::steady_clock::now() + leave_time;
  int status = 0;
  while (::waitpid(pid_, &status, WNOHANG) == 0) {
    if (failed_ || std::chrono::steady_clock::now() > deadline) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, &status, 0);
      return;
    }
    ::usleep(1000);
  }
}

void ForkedProcess::send(Message kind, const std::string& payload) noexcept {
  try {
    channel_->send(kind, payload);
  } catch (const std::exception&) {
    failed_ = true;
  }
}

std::string ForkedProcess::expect(Message kind, std::chrono::seconds time) {
  Channel::Received received{};
  try {
    received = channel_->receive(std::chrono::steady_clock::now() + time);
  } catch (const std::exception& error) {
    failed_ = true;
    throw std::runtime_error(fmt::format("{}: {}", role_, error.what()));
  }
  if (received.kind == kind) return std::move(received.payload);
  failed_ = true;
  const bool told = received.kind == Message::failed;
  throw std::runtime_error(fmt::format("{}: {}", role_, told ? received.payload : "unexpected answer"));
}

std::string ForkedProcess::give_up() {
  failed_ = true;
  try {
    const Channel::Received last = channel_->receive(std::chrono::steady_clock::now() + last_words_time);
    if (last.kind == Message::failed) return fmt::format("; {}: {}", role_, last.payload);
  } catch (const std::exception&) {
    // Nothing more to learn from it.
  }
  return {};
}

std::string in_child_process(const std::function<std::string()>& work) {
  ForkedProcess process("child process", std::nullopt,
                        [&](Channel& channel) { channel.send(Message::done, work()); });
  return process.expect(Message::done);
}

}  // namespace perf
