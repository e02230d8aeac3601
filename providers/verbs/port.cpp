#include "port.hpp"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "errors.hpp"

namespace weft::verbs {

namespace {

constexpr std::uint64_t least_message = std::uint64_t{1} << 20;  // OPS-9
constexpr std::size_t most_gids = 1024;

struct FreeList {
  void operator()(ibv_device** list) const noexcept { ibv_free_device_list(list); }
};
using DeviceList = std::unique_ptr<ibv_device*, FreeList>;

bool is_mapped_ipv4(const ibv_gid& gid) noexcept {
  static constexpr std::array<std::uint8_t, 12> mapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::equal(mapped.begin(), mapped.end(), std::begin(gid.raw));
}
bool is_link_local(const ibv_gid& gid) noexcept { return gid.raw[0] == 0xfe && (gid.raw[1] & 0xc0) == 0x80; }

// The address as a GID of RoCE has it; false for another family.
bool gid_bytes(std::span<const std::byte> address, ibv_gid& gid) noexcept {
  sockaddr_storage storage{};
  std::memcpy(&storage, address.data(), std::min(address.size(), sizeof storage));
  if (address.size() >= sizeof(sockaddr_in) && storage.ss_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, &storage, sizeof in);
    gid = {};
    gid.raw[10] = gid.raw[11] = 0xff;
    std::memcpy(&gid.raw[12], &in.sin_addr, sizeof in.sin_addr);
    return true;
  }
  if (address.size() >= sizeof(sockaddr_in6) && storage.ss_family == AF_INET6) {
    sockaddr_in6 in{};
    std::memcpy(&in, &storage, sizeof in);
    std::memcpy(gid.raw, &in.sin6_addr, sizeof gid.raw);
    return true;
  }
  return false;
}

// Higher is better.
int usefulness(const ibv_gid_entry& entry) noexcept {
  if (entry.gid_type == IBV_GID_TYPE_IB) return 1;
  const int version = entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? 10 : 0;
  if (is_mapped_ipv4(entry.gid)) return version + 4;
  return version + (is_link_local(entry.gid) ? 2 : 3);
}

std::string state_text(const Port& port) {
  return "port " + std::to_string(port.number) + " is " + ibv_port_state_str(port.state.state);
}

}  // namespace

bool Port::software() const noexcept {
  constexpr std::uint32_t no_vendor = 0xffffff;  // what Soft-RoCE states
  return limits.vendor_id == no_vendor || limits.vendor_id == 0 || name.starts_with("rxe") ||
         name.starts_with("siw");
}

std::string Port::obstacle() const {
  if (device->device->transport_type == IBV_TRANSPORT_IWARP)
    return "it is iWARP, which has no atomics and where a message without a posted receive ends the "
           "connection; use the provider ofi over verbs, or tcp";
  if (device->device->transport_type != IBV_TRANSPORT_IB)
    return "its transport is neither InfiniBand nor RoCE";
  if (state.state != IBV_PORT_ACTIVE)
    return state_text(*this) + "; bring its network interface up, or on InfiniBand start a subnet manager";
  if (limits.atomic_cap == IBV_ATOMIC_NONE)
    return "it has no atomics, which every provider must offer (fetch-and-add, compare-and-swap)";
  if (state.max_msg_sz < least_message)
    return "its largest message is " + std::to_string(state.max_msg_sz) + " bytes; at least " +
           std::to_string(least_message) + " are needed";
  if (ethernet() && gids.empty()) return "its port has no GID: give its network interface an address";
  return {};
}

const ibv_gid_entry* Port::gid(std::uint32_t index) const noexcept {
  const auto found =
      std::find_if(gids.begin(), gids.end(), [&](const auto& entry) { return entry.gid_index == index; });
  return found == gids.end() ? nullptr : &*found;
}

const ibv_gid_entry* Port::gid_of(std::span<const std::byte> address) const noexcept {
  ibv_gid wanted{};
  if (!gid_bytes(address, wanted)) return nullptr;
  const ibv_gid_entry* best = nullptr;
  for (const ibv_gid_entry& entry : gids) {
    if (std::memcmp(entry.gid.raw, wanted.raw, sizeof wanted.raw) != 0) continue;
    if (best == nullptr || usefulness(entry) > usefulness(*best)) best = &entry;
  }
  return best;
}

const ibv_gid_entry* Port::usual_gid() const noexcept {
  const auto best = std::max_element(
      gids.begin(), gids.end(), [](const auto& a, const auto& b) { return usefulness(a) < usefulness(b); });
  return best == gids.end() ? nullptr : &*best;
}

std::string address_text(const Port& port, const ibv_gid_entry& entry) {
  if (!port.ethernet()) return "any";
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (is_mapped_ipv4(entry.gid)) {
    inet_ntop(AF_INET, &entry.gid.raw[12], text.data(), text.size());
    return text.data();
  }
  inet_ntop(AF_INET6, entry.gid.raw, text.data(), text.size());
  std::string result = text.data();
  std::array<char, IF_NAMESIZE> interface {};
  if (is_link_local(entry.gid) && if_indextoname(entry.ndev_ifindex, interface.data()) != nullptr)
    result += std::string("%") + interface.data();
  return result;
}

bool is_loopback(std::span<const std::byte> address) noexcept {
  ibv_gid gid{};
  if (!gid_bytes(address, gid)) return false;
  if (is_mapped_ipv4(gid)) return gid.raw[12] == 127;
  return std::all_of(std::begin(gid.raw), std::end(gid.raw) - 1, [](auto b) { return b == 0; }) &&
         gid.raw[15] == 1;
}

std::vector<std::string> device_names() {
  int count = 0;
  const DeviceList list(ibv_get_device_list(&count));
  std::vector<std::string> names;
  for (int i = 0; list != nullptr && i < count; ++i) names.emplace_back(ibv_get_device_name(list.get()[i]));
  return names;
}

Port open_port(const std::string& device, std::optional<std::uint8_t> number) {
  int count = 0;
  const DeviceList list(ibv_get_device_list(&count));
  Port port;
  port.name = device;
  for (int i = 0; list != nullptr && i < count && !port.device; ++i) {
    if (device != ibv_get_device_name(list.get()[i])) continue;
    errno = 0;
    port.device.reset(ibv_open_device(list.get()[i]));
    if (!port.device) {
      const int code = errno != 0 ? errno : ENODEV;
      throw Error(Status::unavailable, "device " + device + " cannot be opened: " + text_of(code) +
                                           "; /dev/infiniband/uverbs* must be readable and writable");
    }
  }
  if (!port.device) throw Error(Status::not_found, "there is no RDMA device '" + device + "'");
  if (const int code = ibv_query_device(port.device.get(), &port.limits); code != 0)
    fail_call("device " + device + " does not tell its limits", code);
  if (number && *number > port.limits.phys_port_cnt) {
    throw Error(Status::not_found, "device " + device + " has no port " + std::to_string(*number) +
                                       ": it has " + std::to_string(port.limits.phys_port_cnt));
  }
  // Without a number: the first port that is active, else the first.
  port.number = number.value_or(1);
  for (unsigned n = 1; !number && n <= port.limits.phys_port_cnt; ++n) {
    ibv_port_attr state{};
    if (ibv_query_port(port.device.get(), static_cast<std::uint8_t>(n), &state) == 0 &&
        state.state == IBV_PORT_ACTIVE) {
      port.number = static_cast<std::uint8_t>(n);
      break;
    }
  }
  if (const int code = ibv_query_port(port.device.get(), port.number, &port.state); code != 0)
    fail_call("port " + std::to_string(port.number) + " of device " + device + " does not tell its state",
              code);
  port.gids.resize(most_gids);
  const ssize_t known = ibv_query_gid_table(port.device.get(), port.gids.data(), port.gids.size(), 0);
  port.gids.resize(known > 0 ? static_cast<std::size_t>(known) : 0);
  std::erase_if(port.gids, [&](const auto& entry) { return entry.port_num != port.number; });
  return port;
}

std::vector<FabricReport> report_devices() {
  constexpr int hardware_priority = 1000;
  constexpr int software_priority = 100;  // below tcp
  std::vector<FabricReport> reports;
  for (const std::string& name : device_names()) {
    FabricReport report;
    report.name = report.device = name;
    report.trust = Trust::connected_peers;
    try {
      const Port port = open_port(name, std::nullopt);
      report.reason = port.obstacle();
      report.usable = report.reason.empty();
      report.priority = port.software() ? software_priority : hardware_priority;
    } catch (const Error& error) {
      report.reason = error.what();
    }
    reports.push_back(std::move(report));
  }
  if (reports.empty()) {
    reports.emplace_back().reason =
        "this machine has no RDMA device (no adapter, or its kernel modules are not loaded; `ibv_devices` "
        "lists them)";
    reports.back().trust = Trust::connected_peers;
  }
  return reports;
}

}  // namespace weft::verbs
