#include "same_host.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <string_view>

namespace weft::tcp {

bool stays_on_this_host(int socket) noexcept {
  sockaddr_storage local{};
  sockaddr_storage peer{};
  socklen_t local_size = sizeof local;
  socklen_t peer_size = sizeof peer;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&local), &local_size) != 0 ||
      ::getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &peer_size) != 0 ||
      local.ss_family != peer.ss_family) {
    return false;
  }
  // Whoever connects to an address of its own host is given a source address of the same host: the same one,
  // or another loopback one.
  if (local.ss_family == AF_INET) {
    const std::uint32_t a = ntohl(reinterpret_cast<const sockaddr_in&>(local).sin_addr.s_addr);
    const std::uint32_t b = ntohl(reinterpret_cast<const sockaddr_in&>(peer).sin_addr.s_addr);
    return a == b || (a >> 24 == IN_LOOPBACKNET && b >> 24 == IN_LOOPBACKNET);
  }
  if (local.ss_family == AF_INET6) {
    return std::memcmp(&reinterpret_cast<const sockaddr_in6&>(local).sin6_addr,
                       &reinterpret_cast<const sockaddr_in6&>(peer).sin6_addr, sizeof(in6_addr)) == 0;
  }
  return false;
}

void stop_pacing_on_this_host(int socket) noexcept {
  if (!stays_on_this_host(socket)) return;
  std::array<char, 16> name{};  // TCP_CA_NAME_MAX of the kernel
  socklen_t size = name.size() - 1;
  if (::getsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, name.data(), &size) != 0) return;
  if (!std::string_view(name.data()).starts_with("bbr")) return;
  // Always built in, and every process may choose it; if not, it stays as slow as it was.
  constexpr std::string_view plain = "reno";
  (void)::setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, plain.data(), plain.size());
}

}  // namespace weft::tcp
