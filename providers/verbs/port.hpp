// Ports of devices as they are found: what they can do, and whether that is enough.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "handles.hpp"
#include "weft/discovery.hpp"

namespace weft::verbs {

// An opened device with one of its ports.
struct Port {
  DeviceHandle device;
  std::string name;
  std::uint8_t number = 1;
  ibv_device_attr limits{};
  ibv_port_attr state{};
  std::vector<ibv_gid_entry> gids;  // of this port

  [[nodiscard]] bool ethernet() const noexcept { return state.link_layer == IBV_LINK_LAYER_ETHERNET; }
  // Done by the host's CPU: slower than TCP, so never taken before it.
  [[nodiscard]] bool software() const noexcept;
  // Why this port cannot carry the contract; empty when it can.
  [[nodiscard]] std::string obstacle() const;

  [[nodiscard]] const ibv_gid_entry* gid(std::uint32_t index) const noexcept;
  // The entry that is this address (a sockaddr), RoCE v2 before v1; null when there is none.
  [[nodiscard]] const ibv_gid_entry* gid_of(std::span<const std::byte> address) const noexcept;
  // The entry to use when nobody says which: RoCE v2 with an IPv4 address, then IPv6, then link-local.
  [[nodiscard]] const ibv_gid_entry* usual_gid() const noexcept;
};

// Numeric text of an IP-based GID ("10.1.2.3", "fe80::1%eth0"); "any" for one that is no address.
[[nodiscard]] std::string address_text(const Port& port, const ibv_gid_entry& entry);
[[nodiscard]] bool is_loopback(std::span<const std::byte> address) noexcept;

// Names of all devices of this machine, in the library's order.
[[nodiscard]] std::vector<std::string> device_names();
// Opens a device and asks for everything. Throws Error.
[[nodiscard]] Port open_port(const std::string& device, std::optional<std::uint8_t> number);
// For Provider::probe.
[[nodiscard]] std::vector<FabricReport> report_devices();

}  // namespace weft::verbs
