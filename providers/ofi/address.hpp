// Internet addresses between the two sides: as 18 bytes in the blob, and as libfabric wants them.
#pragma once

#include <netinet/in.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weft::ofi {

// IPv4 is mapped into IPv6.
struct InternetAddress {
  static constexpr std::size_t size = 18;
  std::array<std::uint8_t, 16> address{};
  std::uint16_t port = 0;

  // From a sockaddr of either family; nothing when it is neither.
  [[nodiscard]] static std::optional<InternetAddress> from(
      std::span<const std::byte> socket_address) noexcept;
  [[nodiscard]] static std::optional<InternetAddress> decode(std::span<const std::byte> bytes) noexcept;
  void encode(std::vector<std::byte>& bytes) const;
  [[nodiscard]] bool is_mapped() const noexcept;
  [[nodiscard]] bool is_any() const noexcept;
  [[nodiscard]] bool is_loopback() const noexcept;
  [[nodiscard]] bool is_on_link() const noexcept;  // reached within its link only
  [[nodiscard]] std::string text() const;          // without the port
  // As sockaddr_in6, or, with `narrow`, as sockaddr_in, which takes an address that is mapped. `scope` goes
  // to link-local ones.
  [[nodiscard]] std::vector<std::byte> as_socket_address(bool narrow, std::uint32_t scope) const;
};

// The scope of a link-local IPv6 address: the interface by which this host reaches it; else 0.
[[nodiscard]] std::uint32_t scope_of(std::span<const std::byte> socket_address) noexcept;

}  // namespace weft::ofi
