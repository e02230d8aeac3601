// Words for what decorators report.
#pragma once

#include <string>

#include "weft/flags.hpp"
#include "weft/work_request.hpp"

namespace weft::decorator {

// "unsignalled|fence"; "none".
[[nodiscard]] std::string to_text(Flags flags);
[[nodiscard]] std::string to_text(Access access);

[[nodiscard]] constexpr std::uint64_t total_length(std::span<const Segment> segments) noexcept {
  std::uint64_t total = 0;
  for (const Segment& segment : segments) total += segment.length;
  return total;
}

}  // namespace weft::decorator
