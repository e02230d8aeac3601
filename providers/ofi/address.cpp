#include "address.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

namespace weft::ofi {

namespace {

constexpr std::array<std::uint8_t, 12> mapped_prefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

template <class Address>
[[nodiscard]] std::optional<Address> load(std::span<const std::byte> bytes) noexcept {
  if (bytes.size() < sizeof(Address)) return std::nullopt;
  Address address;
  std::memcpy(&address, bytes.data(), sizeof address);
  return address;
}

[[nodiscard]] sa_family_t family_of(std::span<const std::byte> bytes) noexcept {
  sa_family_t family = AF_UNSPEC;
  if (bytes.size() >= sizeof(sockaddr))
    std::memcpy(&family, bytes.data() + offsetof(sockaddr, sa_family), sizeof family);
  return family;
}

}  // namespace

std::optional<InternetAddress> InternetAddress::from(std::span<const std::byte> socket_address) noexcept {
  InternetAddress result;
  if (family_of(socket_address) == AF_INET) {
    const auto address = load<sockaddr_in>(socket_address);
    if (!address) return std::nullopt;
    std::copy(mapped_prefix.begin(), mapped_prefix.end(), result.address.begin());
    std::memcpy(result.address.data() + mapped_prefix.size(), &address->sin_addr, sizeof address->sin_addr);
    result.port = ntohs(address->sin_port);
    return result;
  }
  const auto address = load<sockaddr_in6>(socket_address);
  if (family_of(socket_address) != AF_INET6 || !address) return std::nullopt;
  std::memcpy(result.address.data(), &address->sin6_addr, sizeof address->sin6_addr);
  result.port = ntohs(address->sin6_port);
  return result;
}

std::optional<InternetAddress> InternetAddress::decode(std::span<const std::byte> bytes) noexcept {
  if (bytes.size() != size) return std::nullopt;
  InternetAddress result;
  std::memcpy(result.address.data(), bytes.data(), result.address.size());
  std::memcpy(&result.port, bytes.data() + result.address.size(), sizeof result.port);
  return result;
}

void InternetAddress::encode(std::vector<std::byte>& bytes) const {
  const std::size_t at = bytes.size();
  bytes.resize(at + size);
  std::memcpy(bytes.data() + at, address.data(), address.size());
  std::memcpy(bytes.data() + at + address.size(), &port, sizeof port);
}

bool InternetAddress::is_mapped() const noexcept {
  return std::equal(mapped_prefix.begin(), mapped_prefix.end(), address.begin());
}

bool InternetAddress::is_any() const noexcept {
  const auto begin = address.begin() + (is_mapped() ? mapped_prefix.size() : 0);
  return std::all_of(begin, address.end(), [](std::uint8_t byte) { return byte == 0; });
}

bool InternetAddress::is_loopback() const noexcept {
  in6_addr native;
  std::memcpy(&native, address.data(), sizeof native);
  return is_mapped() ? address[mapped_prefix.size()] == IN_LOOPBACKNET : IN6_IS_ADDR_LOOPBACK(&native);
}

bool InternetAddress::is_on_link() const noexcept {
  in6_addr native;
  std::memcpy(&native, address.data(), sizeof native);
  return IN6_IS_ADDR_LINKLOCAL(&native);
}

std::string InternetAddress::text() const {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* const from = address.data() + (is_mapped() ? mapped_prefix.size() : 0);
  return inet_ntop(is_mapped() ? AF_INET : AF_INET6, from, text.data(), text.size());
}

std::vector<std::byte> InternetAddress::as_socket_address(bool narrow, std::uint32_t scope) const {
  if (narrow) {
    sockaddr_in result{};
    result.sin_family = AF_INET;
    result.sin_port = htons(port);
    std::memcpy(&result.sin_addr, address.data() + mapped_prefix.size(), sizeof result.sin_addr);
    const auto bytes = std::as_bytes(std::span(&result, 1));
    return {bytes.begin(), bytes.end()};
  }
  sockaddr_in6 result{};
  result.sin6_family = AF_INET6;
  result.sin6_port = htons(port);
  std::memcpy(&result.sin6_addr, address.data(), address.size());
  if (IN6_IS_ADDR_LINKLOCAL(&result.sin6_addr)) result.sin6_scope_id = scope;
  const auto bytes = std::as_bytes(std::span(&result, 1));
  return {bytes.begin(), bytes.end()};
}

std::uint32_t scope_of(std::span<const std::byte> socket_address) noexcept {
  if (family_of(socket_address) != AF_INET6) return 0;
  const auto address = load<sockaddr_in6>(socket_address);
  return address ? address->sin6_scope_id : 0;
}

}  // namespace weft::ofi
