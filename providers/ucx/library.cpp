#include "library.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <ucs/config/global_opts.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "settings.hpp"
#include "transports.hpp"
#include "weft/status.hpp"

namespace weft::ucx {

namespace {

std::string_view environment(const char* name) noexcept {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

// UCX replaces mmap, munmap and others of the whole process to watch registered memory. Nothing is registered
// here, so the program keeps its own (1.13 reads this when its first context is made).
void keep_hooks_off(provider::Host& host) {
  const auto wish = host.variable(hooks_variable);
  if (wish && !wish->empty() && *wish != "off" && *wish != "on") {
    throw Error(Status::invalid_argument,
                std::string(hooks_variable) + " is '" + *wish + "'; it can be off or on");
  }
  if ((wish && *wish == "on") || !environment("UCX_MEM_EVENTS").empty()) return;
  static_cast<void>(ucs_global_opts_set_value("MEM_EVENTS", "n"));
}

// Whether a peer could reach this interface: an address that holds on one link only is none to UCX, which
// keeps no scopes.
bool is_reachable(std::string_view interface, const ifaddrs* list) noexcept {
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || interface != one->ifa_name) continue;
    if (one->ifa_addr->sa_family == AF_INET) return true;
    if (one->ifa_addr->sa_family != AF_INET6) continue;
    sockaddr_in6 address{};
    std::memcpy(&address, one->ifa_addr, sizeof address);
    if (!IN6_IS_ADDR_LINKLOCAL(&address.sin6_addr)) return true;
  }
  return false;
}

// Of the interfaces that UCX finds, those that are of use; empty when none is. They are named to UCX, since
// one that comes meanwhile, or goes, would take every worker with it.
std::string useful_interfaces(const std::vector<Transport>& found) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  std::vector<std::string> useful;
  for (const Transport& transport : found) {
    if (transport.name == "tcp" && is_reachable(transport.device, list)) useful.push_back(transport.device);
  }
  freeifaddrs(list);
  return join_list(useful, ",");
}

ConfigHandle configure(const std::string& transports, std::string_view device,
                       std::chrono::milliseconds peer_timeout) {
  ucp_config_t* read = nullptr;
  if (const ucs_status_t code = ucp_config_read(nullptr, nullptr, &read); code != UCS_OK)
    refuse("ucp_config_read", code);
  ConfigHandle config(read);
  const auto set = [&config](const char* key, const std::string& value) {
    if (const ucs_status_t code = ucp_config_modify(config.get(), key, value.c_str()); code != UCS_OK)
      refuse((std::string("setting ") + key + " to " + value).c_str(), code);
  };
  set("TLS", transports);
  if (!device.empty()) set("NET_DEVICES", std::string(device));
  for (const Setting& setting : settings_for(transports, peer_timeout))
    set(setting.key.c_str(), setting.value);
  return config;
}

}  // namespace

void refuse(const char* call, ucs_status_t code) {
  const bool scarce =
      code == UCS_ERR_NO_MEMORY || code == UCS_ERR_NO_RESOURCE || code == UCS_ERR_EXCEEDS_LIMIT;
  throw Error(scarce ? Status::resource_limit : Status::unavailable,
              std::string("UCX: ") + call + " failed: " + ucs_status_string(code));
}

Library open_library(provider::Host& host, const Lanes& lanes, std::string_view device,
                     std::span<const std::byte> address, std::chrono::milliseconds peer_timeout) {
  keep_hooks_off(host);
  Library library;
  library.lanes = &lanes;
  const std::string_view user_list = environment("UCX_TLS");
  const std::string allowed = restricted(lanes, user_list);
  if (allowed.empty()) {
    throw Error(Status::unavailable, "UCX_TLS=" + std::string(user_list) + " leaves none of the transports " +
                                         lanes.transports + "; unset it, or name one of them in it");
  }
  const std::vector<Transport> found = list_transports();
  std::vector<std::string> usable;
  for (std::string& name : split_list(allowed))
    if (!devices_of(found, name).empty()) usable.push_back(std::move(name));
  library.transports = join_list(usable, ",");
  library.devices = devices_of(found, library.transports);
  if (usable.empty() || library.transports == "cma") {
    throw Error(Status::unavailable, "UCX finds none of the transports " + allowed +
                                         " on this machine; ucx_info -d lists what it finds");
  }
  if (lanes.wire_up == WireUp::listener) {
    std::vector<Transport> candidates;
    const std::vector<std::string> allowed_devices = split_list(environment("UCX_NET_DEVICES"));
    for (const Transport& one : found) {
      const bool named = std::find(usable.begin(), usable.end(), one.name) != usable.end();
      if (named &&
          (allowed_devices.empty() || environment("UCX_NET_DEVICES") == "all" ||
           std::find(allowed_devices.begin(), allowed_devices.end(), one.device) != allowed_devices.end()))
        candidates.push_back(one);
    }
    library.rdma = choose_device(candidates, device, address);
    library.devices = library.rdma.name;
    device = library.rdma.name;
  }
  const bool over_network =
      !devices_of(found, "tcp").empty() && library.transports.find("tcp") != std::string::npos;
  if (!device.empty() && !over_network && library.rdma.name.empty()) device = {};
  std::string useful;
  if (device.empty() && over_network && environment("UCX_NET_DEVICES").empty()) {
    useful = useful_interfaces(found);
    device = useful;
  }
  if (!device.empty() && library.transports == "tcp") library.devices = device;

  const SignalsBlocked blocked;
  const ConfigHandle config = configure(library.transports, device, peer_timeout);
  ucp_params_t parameters{};
  parameters.field_mask = UCP_PARAM_FIELD_FEATURES;
  // Active messages only: put, get and atomics would be carried out at the target unchecked (MEM-4).
  parameters.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  ucp_context_h context = nullptr;
  if (const ucs_status_t code = ucp_init(&parameters, config.get(), &context); code != UCS_OK)
    refuse("ucp_init", code);
  library.context.reset(context);
  return library;
}

namespace {

// The bytes of the IP address, that of an IPv4 one mapped into IPv6 included.
std::span<const std::byte> ip_of(std::span<const std::byte> address) noexcept {
  sa_family_t family = 0;
  if (address.size() < sizeof(sockaddr_in)) return {};
  std::memcpy(&family, address.data() + offsetof(sockaddr, sa_family), sizeof family);
  if (family == AF_INET) return address.subspan(offsetof(sockaddr_in, sin_addr), sizeof(in_addr));
  if (family != AF_INET6 || address.size() < sizeof(sockaddr_in6)) return {};
  in6_addr long_address{};
  const auto bytes = address.subspan(offsetof(sockaddr_in6, sin6_addr), sizeof long_address);
  std::memcpy(&long_address, bytes.data(), bytes.size());
  return IN6_IS_ADDR_V4MAPPED(&long_address) ? bytes.last(sizeof(in_addr)) : bytes;
}

}  // namespace

std::string interface_with(std::span<const std::byte> address) {
  const auto wanted = ip_of(address);
  if (wanted.empty()) return {};
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  std::string name;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr) continue;
    const bool old = one->ifa_addr->sa_family == AF_INET;
    const auto has = ip_of({reinterpret_cast<const std::byte*>(one->ifa_addr),
                            old ? sizeof(sockaddr_in) : sizeof(sockaddr_in6)});
    // All of 127.0.0.0/8 is loopback.
    const std::size_t compared = old && (one->ifa_flags & IFF_LOOPBACK) != 0 ? 1 : wanted.size();
    if (has.size() == wanted.size() &&
        std::equal(has.begin(), has.begin() + static_cast<std::ptrdiff_t>(compared), wanted.begin())) {
      name = one->ifa_name;
      break;
    }
  }
  freeifaddrs(list);
  return name;
}

const char* version_text() {
  static const std::string text = std::string("0.1.0 (UCX ") + ucp_get_version_string() + ")";
  return text.c_str();
}

ucp_worker_h make_worker(ucp_context_h context, std::uint64_t number) {
  const SignalsBlocked blocked;
  ucp_worker_params_t parameters{};
  parameters.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  parameters.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  if (number != 0) parameters.field_mask |= UCP_WORKER_PARAM_FIELD_CLIENT_ID;
  parameters.client_id = number;
  ucp_worker_h worker = nullptr;
  if (const ucs_status_t code = ucp_worker_create(context, &parameters, &worker); code != UCS_OK)
    refuse("ucp_worker_create", code);
  return worker;
}

}  // namespace weft::ucx
