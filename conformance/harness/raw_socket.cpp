#include "harness/raw_socket.hpp"

#include <arpa/inet.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace conformance {
namespace {

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

bool ready_within(int descriptor, short events, Duration patience) {
  const Deadline deadline(patience);
  while (true) {
    pollfd ready{descriptor, events, 0};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline.left()) + 1ms;
    const int count = poll(&ready, 1, static_cast<int>(left.count()));
    if (count > 0) return true;
    if (deadline.passed()) return false;
  }
}

sockaddr_in parsed(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  sockaddr_in parsed{};
  parsed.sin_family = AF_INET;
  parsed.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(colon + 1))));
  if (inet_pton(AF_INET, address.substr(0, colon).c_str(), &parsed.sin_addr) != 1) {
    throw std::runtime_error("raw socket: no IPv4 address: " + address);
  }
  return parsed;
}

}  // namespace

RawSocket::RawSocket(RawSocket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

RawSocket& RawSocket::operator=(RawSocket&& other) noexcept {
  if (this != &other) {
    close();
    descriptor_ = std::exchange(other.descriptor_, -1);
  }
  return *this;
}

void RawSocket::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

RawSocket RawSocket::connected_to(const std::string& address) {
  RawSocket result(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in peer = parsed(address);
  if (connect(result.descriptor_, reinterpret_cast<const sockaddr*>(&peer), sizeof(peer)) != 0) {
    fail("raw socket: connect");
  }
  return result;
}

RawSocket RawSocket::listening(std::uint16_t port, const std::string& host) {
  RawSocket result(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  setsockopt(result.descriptor_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  const sockaddr_in local = parsed(host + ':' + std::to_string(port));
  if (bind(result.descriptor_, reinterpret_cast<const sockaddr*>(&local), sizeof(local)) != 0 ||
      listen(result.descriptor_, 16) != 0) {
    fail("raw socket: listen");
  }
  return result;
}

RawSocket RawSocket::accepted(Duration patience) const {
  if (!ready_within(descriptor_, POLLIN, patience)) return RawSocket{};
  return RawSocket(accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC));
}

std::uint16_t RawSocket::port() const {
  sockaddr_in local{};
  socklen_t size = sizeof(local);
  if (getsockname(descriptor_, reinterpret_cast<sockaddr*>(&local), &size) != 0)
    fail("raw socket: getsockname");
  return ntohs(local.sin_port);
}

bool RawSocket::send(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool RawSocket::send_within(std::string_view bytes, Duration patience) const {
  while (!bytes.empty()) {
    if (!ready_within(descriptor_, POLLOUT, patience)) return false;
    const ssize_t sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (sent < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool RawSocket::is_acknowledged() const {
  int unacknowledged = 0;
  if (ioctl(descriptor_, SIOCOUTQ, &unacknowledged) != 0) fail("raw socket: SIOCOUTQ");
  return unacknowledged == 0;
}

std::string RawSocket::receive(Duration patience, std::size_t most) const {
  if (!ready_within(descriptor_, POLLIN, patience)) return {};
  std::string bytes(most, '\0');
  const ssize_t received = recv(descriptor_, bytes.data(), bytes.size(), 0);
  bytes.resize(received > 0 ? static_cast<std::size_t>(received) : 0);
  return bytes;
}

bool RawSocket::closed_within(Duration patience) const {
  const Deadline deadline(patience);
  while (!deadline.passed()) {
    if (!ready_within(descriptor_, POLLIN, deadline.left())) return false;
    char bytes[4096];
    const ssize_t received = recv(descriptor_, bytes, sizeof(bytes), 0);
    if (received == 0 || (received < 0 && errno != EINTR)) return true;
  }
  return false;
}

}  // namespace conformance
