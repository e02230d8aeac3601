#include "device_name.hpp"

#include <charconv>

#include "weft/status.hpp"

namespace weft::verbs {

namespace {

constexpr std::uint32_t most_ports = 255;
constexpr std::uint32_t most_gids = 65'535;

}  // namespace

std::optional<std::uint32_t> parse_number(std::string_view text, std::uint32_t least,
                                          std::uint32_t most) noexcept {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most)
    return std::nullopt;
  return value;
}

DeviceName DeviceName::parse(std::string_view text) {
  const auto refuse = [text](const std::string& why) -> Error {
    return {Status::invalid_argument, "'verbs:" + std::string(text) + "' names no device: " + why +
                                          "; write verbs:DEVICE, verbs:DEVICE/PORT or "
                                          "verbs:DEVICE/PORT/GID, as in verbs:mlx5_0/1/3"};
  };
  DeviceName name;
  const auto first = text.find('/');
  name.device = text.substr(0, first);
  if (first == std::string_view::npos) return name;
  if (name.device.empty()) throw refuse("the device is missing");
  const std::string_view rest = text.substr(first + 1);
  const auto second = rest.find('/');
  const auto port = parse_number(rest.substr(0, second), 1, most_ports);
  if (!port) throw refuse("the port must be a number from 1 to " + std::to_string(most_ports));
  name.port = static_cast<std::uint8_t>(*port);
  if (second == std::string_view::npos) return name;
  name.gid_index = parse_number(rest.substr(second + 1), 0, most_gids);
  if (!name.gid_index) throw refuse("the GID index must be a number from 0 to " + std::to_string(most_gids));
  return name;
}

}  // namespace weft::verbs
