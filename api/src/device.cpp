#include "device.hpp"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <memory>

#include "text.hpp"
#include "weft/status.hpp"

namespace weft::core {
namespace {

struct Interface {
  unsigned index = 0;
  std::vector<SocketAddress> addresses;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> loopback_networks;  // network and mask, host order
};

std::uint32_t v4_number(const sockaddr* address) noexcept {
  return ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr);
}

// By name; interfaces without addresses too.
std::map<std::string, Interface> read_interfaces() {
  ifaddrs* raw = nullptr;
  if (::getifaddrs(&raw) != 0) {
    throw Error(Status::system_error,
                fmt::format("cannot list this host's interfaces (getifaddrs): {}", system_text(errno)));
  }
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> list(raw, &::freeifaddrs);
  std::map<std::string, Interface> interfaces;
  for (const ifaddrs* entry = list.get(); entry != nullptr; entry = entry->ifa_next) {
    // Old alias labels ("eth0:1") are addresses of the interface before the colon.
    const std::string_view label = entry->ifa_name;
    const std::string name(label.substr(0, label.find(':')));
    Interface& interface = interfaces[name];
    if (interface.index == 0) interface.index = ::if_nametoindex(name.c_str());
    if (entry->ifa_addr == nullptr) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (const auto address = SocketAddress::from_sockaddr(entry->ifa_addr, length)) {
      interface.addresses.push_back(*address);
    }
    if (family == AF_INET && (entry->ifa_flags & IFF_LOOPBACK) != 0 && entry->ifa_netmask != nullptr) {
      const std::uint32_t mask = v4_number(entry->ifa_netmask);
      interface.loopback_networks.emplace_back(v4_number(entry->ifa_addr) & mask, mask);
    }
  }
  return interfaces;
}

std::string list_text(const std::map<std::string, Interface>& interfaces) {
  std::vector<std::string> items;
  for (const auto& [name, interface] : interfaces) {
    std::vector<std::string> addresses;
    for (const SocketAddress& address : interface.addresses) addresses.push_back(address.host());
    items.push_back(fmt::format("{} ({})", name, joined(addresses, ", ", "no address")));
  }
  return joined(items);
}

// IPv4 before IPv6, what needs a scope last; a provider takes the first.
SocketAddress first_address(const Interface& interface) {
  const auto rank = [](const SocketAddress& address) {
    if (address.family() == AF_INET) return 0;
    return address.host().find('%') == std::string::npos ? 1 : 2;
  };
  const auto first =
      std::min_element(interface.addresses.begin(), interface.addresses.end(),
                       [&](const SocketAddress& a, const SocketAddress& b) { return rank(a) < rank(b); });
  return first == interface.addresses.end() ? SocketAddress() : *first;
}

// All of 127.0.0.0/8 is local, although the interface shows one address of it.
bool holds(const Interface& interface, const SocketAddress& wanted) {
  if (std::any_of(interface.addresses.begin(), interface.addresses.end(),
                  [&](const SocketAddress& address) { return address.same_host(wanted); })) {
    return true;
  }
  if (wanted.family() != AF_INET) return false;
  const std::uint32_t number = v4_number(wanted.data());
  return std::any_of(interface.loopback_networks.begin(), interface.loopback_networks.end(),
                     [&](const auto& network) { return (number & network.second) == network.first; });
}

// A link-local address without its interface: fine as long as only one interface has it.
std::vector<SocketAddress> with_scope(const std::map<std::string, Interface>& interfaces,
                                      const SocketAddress& wanted) {
  std::vector<SocketAddress> found;
  for (const auto& [name, interface] : interfaces) {
    for (const SocketAddress& address : interface.addresses) {
      const std::string text = address.host();
      if (text.substr(0, text.find('%')) == wanted.host()) found.push_back(address);
    }
  }
  return found;
}

[[noreturn]] void refuse(Status code, std::string_view device, std::string_view why,
                         const std::map<std::string, Interface>& interfaces) {
  throw Error(code, fmt::format("device {}: {}; name one of this host's interfaces or addresses: {}",
                                quoted(device), why, list_text(interfaces)));
}

}  // namespace

DeviceAddress find_device(std::string_view device) {
  const std::map<std::string, Interface> interfaces = read_interfaces();
  if (const auto named = interfaces.find(std::string(device)); named != interfaces.end()) {
    return {named->first, named->second.index, first_address(named->second)};
  }
  std::string_view text = device;
  if (text.size() > 2 && text.front() == '[' && text.back() == ']') text = text.substr(1, text.size() - 2);
  auto wanted = SocketAddress::from_numeric(text, 0);
  if (!wanted) {
    const bool has_port = device.find(':') != std::string_view::npos;
    refuse(Status::not_found, device,
           has_port
               ? "this host has no such interface, and it is no address (a device is written without a port)"
               : "this host has no such interface",
           interfaces);
  }
  if (wanted->is_wildcard()) {
    refuse(Status::invalid_argument, device, "it stands for all addresses, not for one device", interfaces);
  }
  if (wanted->lacks_scope()) {
    const auto candidates = with_scope(interfaces, *wanted);
    if (candidates.size() > 1) {
      refuse(Status::invalid_argument, device,
             fmt::format("several interfaces have this address; say which, as in {}", candidates[0].host()),
             interfaces);
    }
    if (candidates.size() == 1) wanted = candidates[0];
  }
  for (const auto& [name, interface] : interfaces) {
    if (holds(interface, *wanted)) return {name, interface.index, *wanted};
  }
  refuse(Status::not_found, device, "no interface of this host has this address", interfaces);
}

std::string list_interfaces() {
  try {
    return list_text(read_interfaces());
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace weft::core
