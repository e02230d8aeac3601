// Logging inside the core. Costs one relaxed load when the level is off.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "weft/log.hpp"

namespace weft::core {

[[nodiscard]] bool logs(LogLevel level) noexcept;

// Hands one line to the sink, whatever the level is set to; never throws. Control characters are escaped, so
// that what a peer or a user wrote cannot forge a line.
void write_log(LogLevel level, std::string_view line) noexcept;

// log(LogLevel::warning, "cannot … {}: {}", what, why);
template <typename... Values>
void log(LogLevel level, fmt::format_string<Values...> format, Values&&... values) noexcept {
  if (!logs(level)) return;
  try {
    write_log(level, fmt::format(format, std::forward<Values>(values)...));
  } catch (...) {
    // Out of memory: the line is lost, the program goes on.
  }
}

}  // namespace weft::core
