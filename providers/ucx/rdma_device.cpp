#include "rdma_device.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "lanes.hpp"
#include "weft/status.hpp"

namespace weft::ucx {

namespace {

namespace files = std::filesystem;

void add(std::vector<std::string>& names, std::string name) {
  if (name.empty() || std::find(names.begin(), names.end(), name) != names.end()) return;
  names.push_back(std::move(name));
}

std::string first_line(const files::path& file) {
  std::ifstream input(file);
  std::string line;
  std::getline(input, line);
  return line;
}

std::vector<files::path> entries(const files::path& folder) {
  std::error_code none;
  std::vector<files::path> found;
  for (files::directory_iterator at(folder, none), end; !none && at != end; at.increment(none))
    found.push_back(at->path());
  std::sort(found.begin(), found.end());
  return found;
}

// The one wanted, if the interfaces have it; without a wish IPv4 comes first. Addresses that hold on one link
// only are left out, since rdma_cm would want their scope.
sockaddr_in6 address_of(const std::vector<std::string>& interfaces, const sockaddr_in6& wanted) noexcept {
  sockaddr_in6 best{};
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return best;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr ||
        std::find(interfaces.begin(), interfaces.end(), one->ifa_name) == interfaces.end())
      continue;
    const bool old = one->ifa_addr->sa_family == AF_INET;
    const sockaddr_in6 address = mapped({reinterpret_cast<const std::byte*>(one->ifa_addr),
                                         old ? sizeof(sockaddr_in) : sizeof(sockaddr_in6)});
    if (address.sin6_family != AF_INET6 || IN6_IS_ADDR_LINKLOCAL(&address.sin6_addr)) continue;
    if (wanted.sin6_family == AF_INET6 && !same_ip(address, wanted)) continue;
    if (best.sin6_family == AF_INET6 && !old) continue;
    best = address;
    if (old) break;
  }
  freeifaddrs(list);
  best.sin6_port = 0;
  return best;
}

}  // namespace

std::vector<std::string> interfaces_of(std::string_view device, const std::string& folder) {
  const std::size_t colon = device.find(':');
  const std::string port = colon == std::string_view::npos ? "1" : std::string(device.substr(colon + 1));
  const files::path root = files::path(folder) / std::string(device.substr(0, colon));
  std::vector<std::string> names;
  for (const files::path& gid : entries(root / "ports" / port / "gid_attrs" / "ndevs"))
    add(names, first_line(gid));
  // InfiniBand's GIDs belong to no interface; IPoIB's interfaces stand with the adapter.
  if (names.empty())
    for (const files::path& one : entries(root / "device" / "net")) add(names, one.filename().string());
  return names;
}

RdmaDevice choose_device(const std::vector<Transport>& found, std::string_view wish,
                         std::span<const std::byte> address, const std::string& folder) {
  const sockaddr_in6 at = mapped(address);
  std::string known;
  std::string without_address;
  for (const Transport& transport : found) {
    if (!transport.name.starts_with("rc_")) continue;
    RdmaDevice device;
    device.name = transport.device;
    device.interfaces = interfaces_of(device.name, folder);
    known += (known.empty() ? "" : ", ") + device.name;
    const bool wanted =
        wish.empty() || wish == device.name ||
        wish == std::string_view(device.name).substr(0, device.name.find(':')) ||
        std::find(device.interfaces.begin(), device.interfaces.end(), wish) != device.interfaces.end();
    if (!wanted) continue;
    device.address = address_of(device.interfaces, at);
    if (device.address.sin6_family == AF_INET6) return device;
    without_address = device.name;
  }
  if (!without_address.empty() && at.sin6_family == AF_INET6) {
    throw Error(Status::unavailable,
                "RDMA device " + without_address + " cannot be met at " + ip_text(at) +
                    " through rdma_cm: that must be an address of its network interface (`rdma link` names "
                    "it) which holds beyond the link");
  }
  if (!without_address.empty()) {
    throw Error(Status::unavailable,
                "RDMA device " + without_address +
                    " has no IP address, which connecting through rdma_cm needs; give its "
                    "network interface one (`rdma link` names it)");
  }
  throw Error(Status::not_found, "UCX finds no RDMA device '" + std::string(wish) +
                                     "' here; it finds: " + (known.empty() ? "none" : known));
}

sockaddr_in6 mapped(std::span<const std::byte> address) noexcept {
  sockaddr_in6 result{};
  sa_family_t family = AF_UNSPEC;
  if (address.size() < sizeof(sockaddr_in)) return result;
  std::memcpy(&family, address.data() + offsetof(sockaddr, sa_family), sizeof family);
  if (family == AF_INET6 && address.size() >= sizeof result) {
    std::memcpy(&result, address.data(), sizeof result);
  } else if (family == AF_INET) {
    sockaddr_in old{};
    std::memcpy(&old, address.data(), sizeof old);
    result.sin6_family = AF_INET6;
    result.sin6_port = old.sin_port;
    result.sin6_addr.s6_addr[10] = result.sin6_addr.s6_addr[11] = 0xff;
    std::memcpy(&result.sin6_addr.s6_addr[12], &old.sin_addr, sizeof old.sin_addr);
  }
  return result;
}

bool same_ip(const sockaddr_in6& a, const sockaddr_in6& b) noexcept {
  return std::memcmp(&a.sin6_addr, &b.sin6_addr, sizeof a.sin6_addr) == 0;
}

bool is_loopback(const sockaddr_in6& address) noexcept {
  if (IN6_IS_ADDR_V4MAPPED(&address.sin6_addr)) return address.sin6_addr.s6_addr[12] == 127;
  return IN6_IS_ADDR_LOOPBACK(&address.sin6_addr);
}

std::string ip_text(const sockaddr_in6& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool old = IN6_IS_ADDR_V4MAPPED(&address.sin6_addr);
  inet_ntop(old ? AF_INET : AF_INET6, &address.sin6_addr.s6_addr[old ? 12 : 0], text.data(), text.size());
  return text.data();
}

PlainAddress plain(const sockaddr_in6& address) noexcept {
  PlainAddress result;
  if (!IN6_IS_ADDR_V4MAPPED(&address.sin6_addr)) {
    std::memcpy(&result.storage, &address, sizeof address);
    result.length = sizeof address;
    return result;
  }
  sockaddr_in old{};
  old.sin_family = AF_INET;
  old.sin_port = address.sin6_port;
  std::memcpy(&old.sin_addr, &address.sin6_addr.s6_addr[12], sizeof old.sin_addr);
  std::memcpy(&result.storage, &old, sizeof old);
  result.length = sizeof old;
  return result;
}

}  // namespace weft::ucx
