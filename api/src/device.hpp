// The interfaces of this host, and choosing one (SEL-2).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "address.hpp"

namespace weft::core {

struct DeviceAddress {
  std::string interface;  // "eth0"
  unsigned index = 0;     // as the kernel numbers it
  SocketAddress address;  // port 0; no address when the interface has none
};

// Finds an interface by name ("eth0") or by one of this host's addresses ("10.0.0.1", "fe80::1%eth0"). Named
// by interface, the address is its first one: IPv4 before IPv6, link-local ones last. Throws Error(not_found)
// that quotes the value and lists the interfaces with their addresses.
[[nodiscard]] DeviceAddress find_device(std::string_view device);

// "lo (127.0.0.1, ::1), eth0 (10.0.0.1)", for errors.
[[nodiscard]] std::string list_interfaces();

}  // namespace weft::core
