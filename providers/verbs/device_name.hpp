// What follows the colon in `verbs:DEVICE[/PORT[/GID]]`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weft::verbs {

struct DeviceName {
  std::string device;                      // empty: any
  std::optional<std::uint8_t> port;        // from 1
  std::optional<std::uint32_t> gid_index;  // of the port's GID table

  // Throws Error(invalid_argument) with what is wrong.
  [[nodiscard]] static DeviceName parse(std::string_view text);
};

// A whole number in [least, most], or nothing.
[[nodiscard]] std::optional<std::uint32_t> parse_number(std::string_view text, std::uint32_t least,
                                                        std::uint32_t most) noexcept;

}  // namespace weft::verbs
