#include "reach.hpp"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

namespace weft::ofi {

namespace {

// Lets the kernel choose the port.
struct OwnAddress {
  sockaddr_storage bytes{};
  socklen_t length = 0;

  explicit OwnAddress(std::span<const std::byte> from) noexcept
      : length(static_cast<socklen_t>(std::min(from.size(), sizeof bytes))) {
    std::memcpy(&bytes, from.data(), length);
    static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
    reinterpret_cast<sockaddr_in*>(&bytes)->sin_port = 0;
  }
};

// Says nothing of the peer: no ports or no memory here.
[[nodiscard]] bool is_own(int error) noexcept {
  return error == EADDRNOTAVAIL || error == EADDRINUSE || error == ENOBUFS || error == ENOMEM;
}

}  // namespace

void Reach::begin(std::span<const std::byte> from, std::span<const std::byte> to,
                  std::chrono::milliseconds patience) noexcept {
  stop();
  sockaddr_storage peer{};
  const auto length = static_cast<socklen_t>(std::min(to.size(), sizeof peer));
  std::memcpy(&peer, to.data(), length);
  socket_ = ::socket(peer.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket_ < 0) return;  // no descriptors, say: libfabric will see
  const OwnAddress own(from);
  // The way that libfabric will take, as far as there are several.
  static_cast<void>(::bind(socket_, reinterpret_cast<const sockaddr*>(&own.bytes), own.length));
  deadline_ = Clock::now() + patience;
  const bool connected = ::connect(socket_, reinterpret_cast<const sockaddr*>(&peer), length) == 0;
  if (!connected && errno == EINPROGRESS) {
    result_ = EINPROGRESS;
  } else {
    static_cast<void>(settle(connected || is_own(errno) ? 0 : errno));
  }
}

int Reach::look_again() noexcept {
  pollfd place{socket_, POLLOUT, 0};
  if (::poll(&place, 1, 0) == 1) {
    int error = 0;
    socklen_t length = sizeof error;
    if (::getsockopt(socket_, SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = errno;
    return settle(error);
  }
  return Clock::now() < deadline_ ? EINPROGRESS : settle(ETIMEDOUT);
}

int Reach::settle(int result) noexcept {
  ::close(std::exchange(socket_, -1));
  return result_ = result;
}

void Reach::stop() noexcept {
  if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  result_ = 0;
}

}  // namespace weft::ofi
