// Where weft's log lines go.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "weft/export.hpp"

namespace weft {

enum class LogLevel : std::uint8_t { trace, debug, info, warning, error, off };

// Lines at or above the level are logged. Default: WEFT_LOG, else `warning`. Any thread.
WEFT_API void set_log_level(LogLevel level);
[[nodiscard]] WEFT_API LogLevel log_level() noexcept;

// Replaces the default (one line to standard error) by the program's own sink; an empty function restores it.
// Called from any thread, one call at a time, never with a lock of weft's data path held. It must not call
// into weft.
WEFT_API void set_log_sink(std::function<void(LogLevel, std::string_view line)> sink);

}  // namespace weft
