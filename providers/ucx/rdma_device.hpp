// The RDMA device that a context of rc uses, and where it is reached.
#pragma once

#include <netinet/in.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "transports.hpp"

namespace weft::ucx {

struct RdmaDevice {
  std::string name;                     // as UCX has it: "mlx5_0:1"
  std::vector<std::string> interfaces;  // of the network that lie on it
  sockaddr_in6 address{};               // its own; an IPv4 one is mapped into IPv6. Unset family: none
};

inline constexpr auto infiniband_folder = "/sys/class/infiniband";

// The network interfaces of "mlx5_0:1", as the kernel tells of them in `folder`.
[[nodiscard]] std::vector<std::string> interfaces_of(std::string_view device,
                                                     const std::string& folder = infiniband_folder);

// Of the devices of rc that UCX found the one wished for: by its own name, with or without the port, or that
// of an interface on it; empty: the first that has an address. It is met at `address`, a sockaddr, which must
// be its own then; empty: at its first. Throws Error: not_found, unavailable.
[[nodiscard]] RdmaDevice choose_device(const std::vector<Transport>& found, std::string_view wish,
                                       std::span<const std::byte> address = {},
                                       const std::string& folder = infiniband_folder);

// IP address and port of any kind of sockaddr, as an IPv6 one; the family is unset when it is none.
[[nodiscard]] sockaddr_in6 mapped(std::span<const std::byte> address) noexcept;
[[nodiscard]] bool same_ip(const sockaddr_in6& a, const sockaddr_in6& b) noexcept;
[[nodiscard]] bool is_loopback(const sockaddr_in6& address) noexcept;
// "10.0.0.1", "fd00::1".
[[nodiscard]] std::string ip_text(const sockaddr_in6& address);

// As the kernel wants it: an address mapped into IPv6 becomes an IPv4 one again.
struct PlainAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
};
[[nodiscard]] PlainAddress plain(const sockaddr_in6& address) noexcept;

}  // namespace weft::ucx
