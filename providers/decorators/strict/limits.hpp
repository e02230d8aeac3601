// The smallest limits the contract allows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "weft/attributes.hpp"
#include "weft/work_request.hpp"

namespace weft::strict {

inline constexpr std::uint64_t least_message = std::uint64_t{1} << 20;   // OPS-9
inline constexpr std::uint64_t least_transfer = std::uint64_t{1} << 40;  // OPS-9
inline constexpr std::uint32_t least_inline = 32;                        // OPS-6
inline constexpr std::uint32_t least_segments = 4;                       // OPS-7
inline constexpr std::uint32_t few_reads = 2;  // further ones wait by themselves, so any number is allowed

[[nodiscard]] constexpr Limits smallest(Limits limits) noexcept {
  limits.max_message = std::min(limits.max_message, least_message);
  limits.max_transfer = std::min(limits.max_transfer, least_transfer);
  limits.max_inline = std::min(limits.max_inline, least_inline);
  limits.max_segments = std::min(limits.max_segments, least_segments);
  limits.max_outstanding_reads = std::min(limits.max_outstanding_reads, few_reads);
  return limits;
}

// How many of the requests, from the first on, keep to the number of segments.
[[nodiscard]] inline std::size_t few_segments(const ReceiveRequest* requests, std::size_t count) noexcept {
  std::size_t good = 0;
  while (good < count && requests[good].segments.size() <= least_segments) ++good;
  return good;
}

}  // namespace weft::strict
