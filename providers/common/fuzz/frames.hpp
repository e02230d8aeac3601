// What the fuzz target and its mutator agree on.
#pragma once

#include <cstdint>

namespace weft::engine::wire {

// The engine's largest payload of one frame, small, so that operations come in pieces.
inline constexpr std::uint32_t fuzzed_frame_payload = 256;

}  // namespace weft::engine::wire
