// Keys and blobs come from the network: every field is checked.
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "blob.hpp"
#include "key.hpp"

namespace weft::verbs {
namespace {

Key sample_key() { return {0x7f0000001000, 4096, 0x1234, Access::remote_read | Access::remote_write}; }

std::array<std::byte, Key::size> encoded(const Key& key) {
  std::array<std::byte, Key::size> bytes{};
  key.encode(bytes);
  return bytes;
}

TEST(KeyCodec, comes_back_as_it_was) {
  const auto key = Key::decode(encoded(sample_key()));
  ASSERT_TRUE(key.has_value());
  EXPECT_EQ(key->address, sample_key().address);
  EXPECT_EQ(key->length, sample_key().length);
  EXPECT_EQ(key->native, sample_key().native);
  EXPECT_EQ(key->access, sample_key().access);
}

TEST(KeyCodec, every_altered_bit_is_noticed) {
  const auto good = encoded(sample_key());
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    auto bytes = good;
    bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    EXPECT_FALSE(Key::decode(bytes).has_value()) << "bit " << bit;
  }
}

TEST(KeyCodec, every_other_length_is_refused) {
  const auto good = encoded(sample_key());
  for (std::size_t length = 0; length < good.size(); ++length)
    EXPECT_FALSE(Key::decode(std::span(good).first(length)).has_value()) << length;
  std::array<std::byte, Key::size + 1> longer{};
  std::copy(good.begin(), good.end(), longer.begin());
  EXPECT_FALSE(Key::decode(longer).has_value());
}

TEST(KeyCodec, what_no_region_can_have_is_refused_even_with_a_right_sum) {
  Key key = sample_key();
  key.length = 0;
  EXPECT_FALSE(Key::decode(encoded(key)).has_value()) << "no bytes";
  key.length = UINT64_MAX - key.address + 1;
  EXPECT_FALSE(Key::decode(encoded(key)).has_value()) << "wraps around";
  key = sample_key();
  key.access = static_cast<Access>(1U << 31);
  EXPECT_FALSE(Key::decode(encoded(key)).has_value()) << "unknown right";
}

Blob sample_blob() {
  Blob blob;
  blob.pair_number = 0x123456;
  blob.first_packet = 0xabcdef;
  blob.gid.fill(std::byte{7});
  blob.lid = 99;
  blob.mtu = 3;
  blob.ethernet = true;
  blob.acknowledge = 15;
  blob.reads_out = 16;
  blob.reads_in = 8;
  blob.flush_address = 0x7f0000002000;
  blob.flush_key = 77;
  return blob;
}

std::array<std::byte, Blob::size> encoded(const Blob& blob) {
  std::array<std::byte, Blob::size> bytes{};
  blob.encode(bytes);
  return bytes;
}

TEST(BlobCodec, comes_back_as_it_was) {
  const Blob sent = sample_blob();
  const auto blob = Blob::decode(encoded(sent));
  ASSERT_TRUE(blob.has_value());
  EXPECT_EQ(blob->pair_number, sent.pair_number);
  EXPECT_EQ(blob->first_packet, sent.first_packet);
  EXPECT_EQ(blob->gid, sent.gid);
  EXPECT_EQ(blob->lid, sent.lid);
  EXPECT_EQ(blob->mtu, sent.mtu);
  EXPECT_EQ(blob->ethernet, sent.ethernet);
  EXPECT_EQ(blob->acknowledge, sent.acknowledge);
  EXPECT_EQ(blob->reads_out, sent.reads_out);
  EXPECT_EQ(blob->reads_in, sent.reads_in);
  EXPECT_EQ(blob->flush_address, sent.flush_address);
  EXPECT_EQ(blob->flush_key, sent.flush_key);
}

TEST(BlobCodec, fields_out_of_range_are_refused) {
  const auto refused = [](auto&& change) {
    Blob blob = sample_blob();
    change(blob);
    return !Blob::decode(encoded(blob)).has_value();
  };
  EXPECT_TRUE(refused([](Blob& blob) { blob.pair_number = 1U << 24; }));
  EXPECT_TRUE(refused([](Blob& blob) { blob.pair_number = 0; }));
  EXPECT_TRUE(refused([](Blob& blob) { blob.first_packet = 1U << 24; }));
  EXPECT_TRUE(refused([](Blob& blob) { blob.mtu = 0; }));
  EXPECT_TRUE(refused([](Blob& blob) { blob.mtu = 6; }));
  EXPECT_TRUE(refused([](Blob& blob) { blob.reads_out = 0; }));
  EXPECT_TRUE(refused([](Blob& blob) { blob.reads_in = 256; }));
  EXPECT_TRUE(refused([](Blob& blob) { blob.acknowledge = 32; }));
  EXPECT_TRUE(refused([](Blob& blob) { blob.flush_address = UINT64_MAX - 3; }));
}

// Whatever decodes is in range: nothing of it needs to be checked again where it is used.
TEST(BlobCodec, no_bytes_whatever_give_a_field_out_of_range) {
  std::mt19937_64 random(20);
  auto bytes = encoded(sample_blob());
  int decoded = 0;
  for (int round = 0; round < 200'000; ++round) {
    const auto good = bytes;
    for (int n = 0; n < 3; ++n) bytes[8 + random() % (Blob::size - 8)] = static_cast<std::byte>(random());
    if (const auto blob = Blob::decode(bytes)) {
      ++decoded;
      EXPECT_LT(blob->pair_number, 1U << 24);
      EXPECT_LT(blob->first_packet, 1U << 24);
      EXPECT_TRUE(blob->mtu >= 1 && blob->mtu <= 5);
      EXPECT_TRUE(blob->reads_out >= 1 && blob->reads_out <= 255);
      EXPECT_TRUE(blob->reads_in >= 1 && blob->reads_in <= 255);
      EXPECT_LE(blob->acknowledge, 31);
    } else {
      bytes = good;
    }
  }
  EXPECT_GT(decoded, 1000) << "the test looks at sound blobs too";
}

}  // namespace
}  // namespace weft::verbs
