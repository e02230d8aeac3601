// Addresses as programs write them ("host:port", CON-1) and as sockets take them.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace weft::core {

// An IPv4 or IPv6 socket address; a value. Default-made it is no address (family() is AF_UNSPEC).
class SocketAddress {
 public:
  SocketAddress() noexcept = default;

  // "127.0.0.1", "::1", "fe80::1%eth0"; no brackets. Nothing when the text is no numeric address. Throws
  // Error(invalid_argument) when it is one but its scope names no interface of this host, which are listed.
  [[nodiscard]] static std::optional<SocketAddress> from_numeric(std::string_view host, std::uint16_t port);
  // From bytes of a sockaddr; nothing unless it is a whole IPv4 or IPv6 address.
  [[nodiscard]] static std::optional<SocketAddress> from_bytes(std::span<const std::byte> bytes) noexcept;
  [[nodiscard]] static std::optional<SocketAddress> from_sockaddr(const sockaddr* address,
                                                                  socklen_t length) noexcept;
  // All addresses of the host; family AF_INET or AF_INET6.
  [[nodiscard]] static SocketAddress wildcard(int family, std::uint16_t port) noexcept;
  // The addresses of a connected or bound socket; nothing when the system does not tell.
  [[nodiscard]] static std::optional<SocketAddress> local_of(int socket) noexcept;
  [[nodiscard]] static std::optional<SocketAddress> peer_of(int socket) noexcept;

  [[nodiscard]] int family() const noexcept { return storage_.ss_family; }
  [[nodiscard]] std::uint16_t port() const noexcept;
  void set_port(std::uint16_t port) noexcept;
  [[nodiscard]] bool is_wildcard() const noexcept;
  [[nodiscard]] bool is_loopback() const noexcept;
  // A link-local IPv6 address that does not say on which interface: it cannot be connected to.
  [[nodiscard]] bool lacks_scope() const noexcept;

  // An IPv4 address for an IPv4-mapped IPv6 one (as a dual-stack listener sees IPv4 peers), else itself.
  [[nodiscard]] SocketAddress unmapped() const noexcept;

  // "127.0.0.1:7471", "[fe80::1%eth0]:7471"; "none" for no address.
  [[nodiscard]] std::string to_string() const;
  // The same without brackets and port.
  [[nodiscard]] std::string host() const;

  // For bind, connect, and the provider interface. Empty for no address.
  [[nodiscard]] const sockaddr* data() const noexcept { return reinterpret_cast<const sockaddr*>(&storage_); }
  [[nodiscard]] socklen_t size() const noexcept { return length_; }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    return {reinterpret_cast<const std::byte*>(&storage_), length_};
  }

  [[nodiscard]] explicit operator bool() const noexcept { return length_ != 0; }
  // Same host, scope and port.
  [[nodiscard]] bool operator==(const SocketAddress& other) const noexcept;
  [[nodiscard]] bool same_host(const SocketAddress& other) const noexcept;

 private:
  sockaddr_storage storage_{};
  socklen_t length_ = 0;
};

// A host and a port as written; the host is a name or a numeric address without brackets, and empty in
// ":7471".
struct HostPort {
  std::string host;
  std::uint16_t port = 0;

  [[nodiscard]] std::string to_string() const;  // brackets put back where they belong
};

// Reads "host:port", "10.0.0.1:7471", "[::1]:7471", "[fe80::1%eth0]:7", ":7471". Looks nothing up. Throws
// Error(invalid_argument) with a text that quotes the value and says what is expected.
[[nodiscard]] HostPort parse_host_port(std::string_view text);

}  // namespace weft::core
