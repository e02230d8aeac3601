// Times as a user writes them.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

namespace weft::core {

// "10" and "10s" are seconds, "500ms" milliseconds; decimals allowed ("0.5", "1.5s"), no sign, no spaces.
// Nothing when the text is not such a time or longer than a million seconds. Rounded to whole milliseconds.
[[nodiscard]] std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) noexcept;

}  // namespace weft::core
