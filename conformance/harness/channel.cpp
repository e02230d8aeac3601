#include "harness/channel.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "harness/check.hpp"

namespace conformance {
namespace {

constexpr const char* name_of(Channel::Kind kind) {
  switch (kind) {
    case Channel::Kind::text:
      return "a value";
    case Channel::Kind::barrier:
      return "a barrier";
    case Channel::Kind::started:
      return "its start";
    case Channel::Kind::finished:
      return "its end";
    case Channel::Kind::exited:
      return "its exit";
  }
  return "something";
}

constexpr const char* misfit = ": the two sides of this test do not fit each other";

// What the harness checks for itself is no obligation of a provider: it does not count.
[[noreturn]] void stop_with(std::string text) {
  Findings::here().add({__FILE__, __LINE__, std::move(text)});
  throw Stop{};
}

[[noreturn]] void fail(int error, const char* what) {
  throw std::system_error(error, std::generic_category(), what);
}

}  // namespace

Channel& Channel::operator=(Channel&& other) noexcept {
  if (this != &other) {
    close();
    descriptor_ = other.release();
    finished_ = std::move(other.finished_);
    exited_ = std::move(other.exited_);
  }
  return *this;
}

std::pair<Channel, Channel> Channel::make_pair() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) fail(errno, "socketpair");
  return {Channel(ends[0]), Channel(ends[1])};
}

void Channel::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

void Channel::end_of_talk() {
  if (descriptor_ >= 0) shutdown(descriptor_, SHUT_WR);
}

void Channel::put(Kind kind, std::string_view content) {
  std::string packet(1, static_cast<char>(kind));
  packet += content;
  while (::send(descriptor_, packet.data(), packet.size(), MSG_NOSIGNAL) < 0) {
    if (errno == EINTR) continue;
    if (errno == EPIPE || errno == ECONNRESET) throw Abandoned{};
    fail(errno, "control channel: send");
  }
}

std::optional<Channel::Message> Channel::next(Duration patience) {
  const Deadline deadline(patience);
  while (true) {
    pollfd ready{descriptor_, POLLIN, 0};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline.left()) + 1ms;
    const int count = ::poll(&ready, 1, static_cast<int>(left.count()));
    if (count < 0 && errno != EINTR) fail(errno, "control channel: poll");
    if (count > 0) break;
    if (deadline.passed()) return std::nullopt;
  }
  const ssize_t size = recv(descriptor_, nullptr, 0, MSG_PEEK | MSG_TRUNC);
  if (size < 0 && errno != ECONNRESET) fail(errno, "control channel: receive");
  if (size <= 0) throw Abandoned{};
  std::string packet(static_cast<std::size_t>(size), '\0');
  if (recv(descriptor_, packet.data(), packet.size(), 0) != size) fail(errno, "control channel: receive");
  return Message{static_cast<Kind>(packet[0]), packet.substr(1)};
}

void Channel::keep(Message message) {
  if (message.kind == Kind::finished) finished_ = std::move(message.content);
  if (message.kind == Kind::exited) exited_ = std::move(message.content);
}

std::string Channel::expect(Kind kind, Duration patience) {
  const Deadline deadline(patience);
  while (true) {
    std::optional<Message> message = next(deadline.left());
    if (!message) stop_with(std::string("the other side did not send ") + name_of(kind) + " in time");
    if (message->kind == kind) return std::move(message->content);
    const bool ended = message->kind == Kind::finished || message->kind == Kind::exited;
    if (!ended) {
      stop_with(std::string("the other side sent ") + name_of(message->kind) + " instead of " +
                name_of(kind) + misfit);
    }
    keep(std::move(*message));
    // Its findings, when it has any, come with its end and say more than this side could.
    throw Abandoned{};
  }
}

std::optional<std::string> Channel::ending(Kind kind, Duration patience) {
  auto& kept = kind == Kind::finished ? finished_ : exited_;
  const Deadline deadline(patience);
  try {
    while (!kept) {
      std::optional<Message> message = next(deadline.left());
      if (!message) break;
      keep(std::move(*message));
      if (kind == Kind::finished && exited_) break;
    }
  } catch (const Abandoned&) {
  }
  return kept;
}

void Channel::barrier(Duration patience) {
  put(Kind::barrier, {});
  (void)expect(Kind::barrier, patience);
}

void Channel::check_size(std::size_t found, std::size_t expected) {
  if (found == expected) return;
  stop_with("the other side sent a value of " + std::to_string(found) + " bytes instead of " +
            std::to_string(expected) + misfit);
}

}  // namespace conformance
