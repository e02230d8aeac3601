// Frames whose header a transport may leave out.
#include "wire.hpp"

#include <gtest/gtest.h>

#include <array>

namespace weft::engine::wire {
namespace {

constexpr std::size_t payload = 24;
using Frame = std::array<std::byte, sizeof(Header) + payload>;

Frame frame_of(const Header& header) {
  Frame frame{};
  store(frame.data(), header);
  return frame;
}

constexpr auto whole_send = static_cast<std::uint8_t>(Type::whole_send);

TEST(Wire, a_plain_message_has_nothing_but_its_bytes) {
  EXPECT_TRUE(is_plain_message(frame_of({whole_send, 0, 0, payload, 0}).data(), sizeof(Frame)));
  const Header others[] = {
      {static_cast<std::uint8_t>(Type::whole_write), 0, 0, payload, 0},
      {static_cast<std::uint8_t>(Type::send), 0, 0, payload, 0},
      {whole_send, immediate, 0, payload, 0},
      {whole_send, charged, 0, payload, 0},
      {whole_send, acknowledge, 0, payload, 0},
      {whole_send, 0, 1, payload, 0},
      {whole_send, 0, 0, payload, 1},
      {whole_send, 0, 0, payload - 1, 0},
      {whole_send, 0, 0, payload + 1, 0},
  };
  for (const Header& header : others) EXPECT_FALSE(is_plain_message(frame_of(header).data(), sizeof(Frame)));
}

TEST(Wire, less_than_a_header_is_no_plain_message) {
  const Frame frame = frame_of({whole_send, 0, 0, 0, 0});
  EXPECT_TRUE(is_plain_message(frame.data(), sizeof(Header)));
  EXPECT_FALSE(is_plain_message(frame.data(), sizeof(Header) - 1));
  EXPECT_FALSE(is_plain_message(frame.data(), 0));
}

TEST(Wire, a_plain_header_is_made_anew_from_the_length) {
  Frame frame{};
  frame.fill(std::byte{0xff});
  store_plain_header(frame.data(), payload);
  EXPECT_TRUE(is_plain_message(frame.data(), sizeof(Frame)));
  EXPECT_EQ(frame.back(), std::byte{0xff});
}

}  // namespace
}  // namespace weft::engine::wire
