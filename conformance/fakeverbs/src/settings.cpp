#include "settings.hpp"

#include <arpa/inet.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string_view>

namespace fakeverbs {
namespace {

std::string variable(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const auto end = text.find(separator);
    if (end != 0) parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return parts;
}

ibv_gid parse_address(const std::string& text) {
  ibv_gid gid{};
  in_addr ipv4{};
  if (::inet_pton(AF_INET, text.c_str(), &ipv4) == 1) {
    gid.raw[10] = gid.raw[11] = 0xff;
    std::memcpy(gid.raw + 12, &ipv4, sizeof ipv4);
    return gid;
  }
  if (::inet_pton(AF_INET6, text.c_str(), gid.raw) == 1) return gid;
  throw std::invalid_argument("FAKEVERBS_DEVICES: \"" + text + "\" is no IPv4 or IPv6 address");
}

// As a network device has one: entry 0 of the table is the link-local address.
ibv_gid link_local(std::size_t index) {
  ibv_gid gid{};
  gid.raw[0] = 0xfe;
  gid.raw[1] = 0x80;
  gid.raw[8] = 0x02;
  gid.raw[11] = 0xff;
  gid.raw[12] = 0xfe;
  gid.raw[15] = static_cast<std::uint8_t>(index + 1);
  return gid;
}

DeviceSettings parse_device(const std::string& text, std::size_t index) {
  const auto equals = text.find('=');
  if (equals == 0 || equals == std::string::npos || equals >= IBV_SYSFS_NAME_MAX) {
    throw std::invalid_argument("FAKEVERBS_DEVICES: \"" + text + "\" is not NAME=ADDRESS[+ADDRESS…]");
  }
  DeviceSettings device{text.substr(0, equals), {link_local(index)}};
  for (const auto& address : split(std::string_view(text).substr(equals + 1), '+')) {
    device.gids.push_back(parse_address(address));
  }
  return device;
}

Settings read() {
  Settings result;
  result.network = variable("FAKEVERBS_NETWORK", "default");
  if (result.network.find('/') != std::string::npos || result.network.size() > 32) {
    throw std::invalid_argument("FAKEVERBS_NETWORK: a name of at most 32 characters without '/'");
  }
  for (const auto& text : split(variable("FAKEVERBS_DEVICES", "fake0=127.0.0.1+::1"), ',')) {
    result.devices.push_back(parse_device(text, result.devices.size()));
  }
  result.plan = parse_fault_plan(variable("FAKEVERBS_PLAN", ""));
  result.null_mode = variable("FAKEVERBS_NULL", "0") != "0";
  return result;
}

Settings read_or_exit() {
  try {
    return read();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fakeverbs: %s\n", error.what());
    std::_Exit(EXIT_FAILURE);
  }
}

}  // namespace

const Settings& settings() {
  static const Settings* const settings = new Settings(read_or_exit());
  return *settings;
}

}  // namespace fakeverbs
