// Pairs whose fabric writes past the stream.
#pragma once

#include <random>
#include <thread>
#include <vector>

#include "offer_pair.hpp"

namespace weft::engine::test {

[[nodiscard]] inline MessageSide::Options natively() {
  MessageSide::Options options;
  options.engine.native_from = 4096;
  options.messages.buffers.size = 8192;
  options.weather.natives = true;
  return options;
}

// Both up, b's region lent to a; what a writes natively stays under way until the test lets it end.
inline void go_up_held(MessagePair& pair) {
  pair.go_up();
  ASSERT_EQ(pair.a.ends[0].endpoint->borrowed.size(), 1U);
  pair.a.queue.ends_natives = false;
}
inline void let_end(MessagePair& pair) {
  pair.a.queue.ends_natives = true;
  pair.settle();
}

// As MessageSide::post, with flags.
inline Status post(MessageSide& side, Operation operation, std::uint64_t offset, std::uint64_t length,
                   std::uint64_t value, std::uint64_t remote_offset, Flags flags) {
  const Segment place = side.segment(offset, length);
  WorkRequest request;
  request.operation = operation;
  if (operation != Operation::flush) request.segments = std::span(&place, 1);
  request.remote = {side.ends[0].peer_memory.token, remote_offset};
  request.context = value;
  request.flags = flags;
  return side.ends[0].endpoint->post(&request, 1).status;
}

[[nodiscard]] inline std::vector<std::uint64_t> contexts(const std::vector<Completion>& entries) {
  std::vector<std::uint64_t> values;
  for (const Completion& entry : entries) {
    EXPECT_EQ(entry.status, Status::ok);
    values.push_back(entry.context);
  }
  return values;
}

[[nodiscard]] inline wire::Header slot_header(wire::Type type, std::uint16_t slot, std::uint64_t word) {
  return {static_cast<std::uint8_t>(type), 0, slot, 0, word};
}

}  // namespace weft::engine::test
