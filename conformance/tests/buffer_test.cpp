#include "harness/buffer.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace conformance {
namespace {

TEST(Pattern, begins_anywhere_and_is_the_same_by_byte_and_by_word) {
  for (std::uint64_t first = 0; first < 20; ++first) {
    for (std::size_t size = 0; size < 40; ++size) {
      std::vector<std::byte> bytes(size);
      fill_pattern(bytes, 7, first);
      for (std::size_t i = 0; i < size; ++i) ASSERT_EQ(bytes[i], pattern_byte(7, first + i));
      EXPECT_EQ(pattern_difference(bytes, 7, first), "");
    }
  }
}

TEST(Pattern, any_change_is_found) {
  std::vector<std::byte> bytes(1000);
  fill_pattern(bytes, 7);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] ^= std::byte{0x10};
    EXPECT_NE(pattern_difference(bytes, 7), "") << i;
    bytes[i] ^= std::byte{0x10};
  }
  EXPECT_EQ(pattern_difference(bytes, 7), "");
  EXPECT_NE(pattern_difference(bytes, 8), "");
  EXPECT_NE(pattern_difference(bytes, 7, 1), "") << "the same bytes at another place are wrong";
}

TEST(GuardedBuffer, touched_tells_what_poison_left) {
  const GuardedBuffer buffer(5000);
  buffer.poison();
  EXPECT_EQ(buffer.touched(), "");
  buffer.bytes()[4999] = std::byte{1};
  EXPECT_NE(buffer.touched(), "");
  EXPECT_EQ(buffer.touched(0, 4999), "");
  buffer.fill(3);
  EXPECT_EQ(buffer.difference(3), "");
}

TEST(GuardedBuffer, may_be_empty) {
  const GuardedBuffer buffer(0);
  EXPECT_EQ(buffer.touched(), "");
  EXPECT_EQ(buffer.underrun(), "");
}

}  // namespace
}  // namespace conformance
