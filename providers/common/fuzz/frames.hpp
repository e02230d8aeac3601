// What the fuzz target and its mutator agree on.
#pragma once

#include <cstdint>

namespace weft::engine::wire {

// The engine's largest payload of one frame, small, so that operations come in pieces.
inline constexpr std::uint32_t fuzzed_frame_payload = 256;

// An input's first byte: payload may be offered, and is fetched.
inline constexpr std::uint8_t fuzzed_with_offers = 32;

}  // namespace weft::engine::wire
