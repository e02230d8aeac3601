// Pairs whose sides offer payload and fetch it; frames that a hostile peer may send of it.
#pragma once

#include <span>
#include <vector>

#include "message_pair.hpp"

namespace weft::engine::test {

inline constexpr std::uint64_t large = 50'000;

[[nodiscard]] inline MessageSide::Options pulling() {
  MessageSide::Options options;
  options.engine.offer_from = 4096;
  options.messages.buffers.size = 8192;
  options.weather.pulls = true;
  return options;
}
// As above, and what is fetched stays under way until the test lets it end.
[[nodiscard]] inline MessageSide::Options pulling_later() {
  MessageSide::Options options = pulling();
  options.weather.pulls_later = 1;
  return options;
}

// b has receives, a's first operation is being fetched.
inline void begin(MessagePair& pair, Operation operation = Operation::send) {
  pair.go_up();
  for (std::uint64_t i = 0; i < 40; ++i) ASSERT_EQ(pair.b.receive(i * 1000, large, i), Status::ok);
  pair.settle();
  pair.b.queue.ends_fetches = false;
  pair.a.fill(0, large, 5);
  ASSERT_EQ(pair.a.post(operation, 0, large, 10, 500'000), Status::ok);
  pair.settle();
  ASSERT_EQ(pair.b.queue.fetches_under_way(), 1U);
}

[[nodiscard]] inline provider::EndOrder lost() {
  provider::EndOrder order;
  order.cause = Status::peer_lost;
  return order;
}

// Frames in place of a's next ones: its small message leads them to b.
inline void say(MessagePair& pair, std::span<const std::byte> frames) {
  pair.b.queue.inbox.clear();
  ASSERT_EQ(pair.a.post(Operation::write, 0, 8, 99), Status::ok);
  ASSERT_EQ(pair.b.queue.inbox.size(), 1U);
  std::vector<std::byte>& message = pair.b.queue.inbox.front();
  message.resize(sizeof(message::Header));
  message.insert(message.end(), frames.begin(), frames.end());
  pair.b.poll();
}

template <class... Parts>
[[nodiscard]] std::vector<std::byte> frames(const Parts&... parts) {
  std::vector<std::byte> bytes;
  const auto add = [&](const auto& part) {
    const auto raw = std::as_bytes(std::span(&part, 1));
    bytes.insert(bytes.end(), raw.begin(), raw.end());
  };
  (add(parts), ...);
  return bytes;
}

[[nodiscard]] inline wire::Header header(wire::Type type, std::uint32_t length, std::uint64_t word) {
  return {static_cast<std::uint8_t>(type), 0, 0, length, word};
}

}  // namespace weft::engine::test
