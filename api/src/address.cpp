#include "address.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "device.hpp"
#include "text.hpp"
#include "weft/status.hpp"

namespace weft::core {
namespace {

[[nodiscard]] const sockaddr_in& as_v4(const sockaddr_storage& storage) noexcept {
  return reinterpret_cast<const sockaddr_in&>(storage);
}

[[nodiscard]] const sockaddr_in6& as_v6(const sockaddr_storage& storage) noexcept {
  return reinterpret_cast<const sockaddr_in6&>(storage);
}

[[nodiscard]] bool needs_scope(const in6_addr& address) noexcept {
  return IN6_IS_ADDR_LINKLOCAL(&address) || IN6_IS_ADDR_MC_LINKLOCAL(&address);
}

// An interface by name or by number.
[[nodiscard]] unsigned scope_index(std::string_view scope) {
  const std::string name(scope);
  if (const unsigned index = ::if_nametoindex(name.c_str()); index != 0) return index;
  unsigned index = 0;
  const auto [end, error] = std::from_chars(scope.data(), scope.data() + scope.size(), index);
  std::array<char, IF_NAMESIZE> found{};
  if (error == std::errc() && end == scope.data() + scope.size() &&
      ::if_indextoname(index, found.data()) != nullptr) {
    return index;
  }
  return 0;
}

}  // namespace

std::optional<SocketAddress> SocketAddress::from_numeric(std::string_view host, std::uint16_t port) {
  const std::size_t percent = host.find('%');
  const std::string number(host.substr(0, percent));
  if (number.find('\0') != std::string::npos) return {};  // C functions would stop reading there

  SocketAddress result;
  auto& v4 = reinterpret_cast<sockaddr_in&>(result.storage_);
  if (percent == std::string_view::npos && ::inet_pton(AF_INET, number.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    result.length_ = sizeof(sockaddr_in);
    result.set_port(port);
    return result;
  }
  auto& v6 = reinterpret_cast<sockaddr_in6&>(result.storage_);
  if (::inet_pton(AF_INET6, number.c_str(), &v6.sin6_addr) != 1) return {};
  v6.sin6_family = AF_INET6;
  result.length_ = sizeof(sockaddr_in6);
  result.set_port(port);
  if (percent == std::string_view::npos) return result;

  const std::string_view scope = host.substr(percent + 1);
  if (!needs_scope(v6.sin6_addr)) {
    throw Error(Status::invalid_argument,
                fmt::format("{}: only link-local addresses (fe80::...) have a scope; write {} without {}",
                            quoted(host), quoted(number), quoted(host.substr(percent))));
  }
  v6.sin6_scope_id = scope_index(scope);
  if (v6.sin6_scope_id == 0) {
    throw Error(Status::invalid_argument, fmt::format("{}: this host has no interface {}; its interfaces: {}",
                                                      quoted(host), quoted(scope), list_interfaces()));
  }
  return result;
}

std::optional<SocketAddress> SocketAddress::from_bytes(std::span<const std::byte> bytes) noexcept {
  SocketAddress result;
  sa_family_t family = AF_UNSPEC;
  if (bytes.size() < offsetof(sockaddr, sa_data)) return {};
  std::memcpy(&family, bytes.data() + offsetof(sockaddr, sa_family), sizeof family);
  if (family == AF_INET) {
    result.length_ = sizeof(sockaddr_in);
  } else if (family == AF_INET6) {
    result.length_ = sizeof(sockaddr_in6);
  } else {
    return {};
  }
  if (bytes.size() < result.length_) return {};
  std::memcpy(&result.storage_, bytes.data(), result.length_);
  return result;
}

std::optional<SocketAddress> SocketAddress::from_sockaddr(const sockaddr* address,
                                                          socklen_t length) noexcept {
  if (address == nullptr) return {};
  return from_bytes({reinterpret_cast<const std::byte*>(address), length});
}

SocketAddress SocketAddress::wildcard(int family, std::uint16_t port) noexcept {
  SocketAddress result;
  result.storage_.ss_family = static_cast<sa_family_t>(family);
  result.length_ = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  result.set_port(port);
  return result;
}

std::optional<SocketAddress> SocketAddress::local_of(int socket) noexcept {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&storage), &length) != 0) return {};
  return from_sockaddr(reinterpret_cast<const sockaddr*>(&storage), length);
}

std::optional<SocketAddress> SocketAddress::peer_of(int socket) noexcept {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&storage), &length) != 0) return {};
  return from_sockaddr(reinterpret_cast<const sockaddr*>(&storage), length);
}

std::uint16_t SocketAddress::port() const noexcept {
  if (family() == AF_INET) return ntohs(as_v4(storage_).sin_port);
  if (family() == AF_INET6) return ntohs(as_v6(storage_).sin6_port);
  return 0;
}

void SocketAddress::set_port(std::uint16_t port) noexcept {
  if (family() == AF_INET) reinterpret_cast<sockaddr_in&>(storage_).sin_port = htons(port);
  if (family() == AF_INET6) reinterpret_cast<sockaddr_in6&>(storage_).sin6_port = htons(port);
}

bool SocketAddress::is_wildcard() const noexcept {
  const SocketAddress plain = unmapped();
  if (plain.family() == AF_INET) return as_v4(plain.storage_).sin_addr.s_addr == htonl(INADDR_ANY);
  return plain.family() == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&as_v6(plain.storage_).sin6_addr);
}

bool SocketAddress::is_loopback() const noexcept {
  const SocketAddress plain = unmapped();
  if (plain.family() == AF_INET) {
    return (ntohl(as_v4(plain.storage_).sin_addr.s_addr) >> IN_CLASSA_NSHIFT) == IN_LOOPBACKNET;
  }
  return plain.family() == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&as_v6(plain.storage_).sin6_addr);
}

bool SocketAddress::lacks_scope() const noexcept {
  return family() == AF_INET6 && as_v6(storage_).sin6_scope_id == 0 && needs_scope(as_v6(storage_).sin6_addr);
}

SocketAddress SocketAddress::unmapped() const noexcept {
  if (family() != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&as_v6(storage_).sin6_addr)) return *this;
  SocketAddress result = wildcard(AF_INET, port());
  constexpr std::size_t prefix_length = 12;
  std::memcpy(&reinterpret_cast<sockaddr_in&>(result.storage_).sin_addr,
              as_v6(storage_).sin6_addr.s6_addr + prefix_length, sizeof(in_addr));
  return result;
}

std::string SocketAddress::host() const {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (family() == AF_INET) {
    ::inet_ntop(AF_INET, &as_v4(storage_).sin_addr, text.data(), text.size());
    return text.data();
  }
  if (family() != AF_INET6) return "none";
  ::inet_ntop(AF_INET6, &as_v6(storage_).sin6_addr, text.data(), text.size());
  const unsigned scope = as_v6(storage_).sin6_scope_id;
  if (scope == 0) return text.data();
  std::array<char, IF_NAMESIZE> name{};
  // An interface that is gone by now still has its number.
  if (::if_indextoname(scope, name.data()) == nullptr) return fmt::format("{}%{}", text.data(), scope);
  return fmt::format("{}%{}", text.data(), name.data());
}

std::string SocketAddress::to_string() const {
  if (family() == AF_INET) return fmt::format("{}:{}", host(), port());
  if (family() == AF_INET6) return fmt::format("[{}]:{}", host(), port());
  return host();
}

bool SocketAddress::same_host(const SocketAddress& other) const noexcept {
  if (family() != other.family()) return false;
  if (family() == AF_INET) {
    return as_v4(storage_).sin_addr.s_addr == as_v4(other.storage_).sin_addr.s_addr;
  }
  if (family() != AF_INET6) return true;
  const sockaddr_in6& a = as_v6(storage_);
  const sockaddr_in6& b = as_v6(other.storage_);
  return IN6_ARE_ADDR_EQUAL(&a.sin6_addr, &b.sin6_addr) && a.sin6_scope_id == b.sin6_scope_id;
}

bool SocketAddress::operator==(const SocketAddress& other) const noexcept {
  return same_host(other) && port() == other.port();
}

}  // namespace weft::core
