// What stands in front of each message of a message fabric. The fabric brings messages of many endpoints to
// one place, perhaps out of order; from this the receiver finds the endpoint and the message's place in its
// stream.
#pragma once

#include <cstddef>
#include <cstdint>

#include "wire.hpp"

namespace weft::engine::message {

enum class Kind : std::uint8_t {
  data = 0,   // bytes of the stream follow, perhaps none: the first message says that its sender is up
  asleep = 1  // the sender's program sleeps: ring for what you send next. Carries a SleepNotice
};

struct Header {
  std::uint64_t token;  // of the receiving endpoint, from its blob: random, so that no stranger hits it
  std::uint32_t slot_and_kind;  // where the receiver finds the endpoint: below, the kind in the upper 8 bits
  std::uint32_t sequence;       // counts the messages of this direction from 0
};
static_assert(sizeof(Header) == 16);

// Whoever gets it has sent more than its sender had seen when falling asleep, or has not.
struct SleepNotice {
  std::uint64_t seen;  // data messages
};

inline constexpr std::uint32_t slot_bits = 24;
inline constexpr std::uint32_t slot_mask = (1U << slot_bits) - 1;

// How the peer reaches an endpoint: follows the engine's own part of the blob.
struct Address {
  std::uint64_t token;
  std::uint32_t slot;
  std::uint32_t zero;
};
static_assert(sizeof(Address) == 16);

}  // namespace weft::engine::message
