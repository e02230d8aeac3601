// The frame coder: what it writes it reads back, and nothing a stranger sends is read as something else
// (SEC-1, CON-7).
#include "bootstrap/wire.hpp"

#include <gtest/gtest.h>

#include <random>

namespace weft::core::wire {
namespace {

Limits sound_limits() {
  return {.max_message = 1 << 20,
          .max_transfer = std::uint64_t{1} << 40,
          .max_inline = 64,
          .max_segments = 4,
          .send_depth = 128,
          .receive_depth = 0,
          .max_outstanding_reads = 1,
          .unexpected_bytes = 1};
}

Hello full_hello() {
  Hello hello;
  hello.context.fill(std::byte{0xa5});
  hello.provider = "trace+fabric";
  hello.provider_version = "1.2.3 (lib 4)";
  hello.protocol = {2, 9};
  hello.available = {"one", "two"};
  hello.endpoint = 0xdeadbeef;
  hello.limits = sound_limits();
  hello.keeps_connection = true;
  hello.blob = Bytes(max_blob, std::byte{1});
  hello.private_data = Bytes(max_private_data, std::byte{2});
  return hello;
}

std::span<const std::byte> payload_of(const Bytes& frame) {
  return std::span<const std::byte>(frame).subspan(header_size);
}

TEST(Wire, HelloComesBackAsItWasSent) {
  const Hello sent = full_hello();
  const Bytes frame = encode(sent);
  ASSERT_LE(frame.size(), max_frame);
  const auto header = decode_header(std::span<const std::byte, header_size>(frame.data(), header_size));
  ASSERT_TRUE(header);
  EXPECT_EQ(header->type, FrameType::hello);
  EXPECT_EQ(header->length, frame.size() - header_size);
  const auto got = decode<Hello>(payload_of(frame));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->context, sent.context);
  EXPECT_EQ(got->provider, sent.provider);
  EXPECT_EQ(got->provider_version, sent.provider_version);
  EXPECT_EQ(got->protocol.lowest, 2);
  EXPECT_EQ(got->protocol.highest, 9);
  EXPECT_EQ(got->available, sent.available);
  EXPECT_EQ(got->endpoint, sent.endpoint);
  EXPECT_EQ(got->limits.max_transfer, sent.limits.max_transfer);
  EXPECT_EQ(got->limits.unexpected_bytes, 1U);
  EXPECT_TRUE(got->keeps_connection);
  EXPECT_EQ(got->blob, sent.blob);
  EXPECT_EQ(got->private_data, sent.private_data);
}

TEST(Wire, EndComesBackAsItWasSent) {
  const End sent{.endpoint = 7,
                 .cause = Status::disconnected,
                 .after_messages = true,
                 .messages = 0x0123456789abcdef,
                 .detail = ~std::uint64_t{0},
                 .native_code = -5,
                 .text = "why"};
  const auto got = decode<End>(payload_of(encode(sent)));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->endpoint, 7U);
  EXPECT_EQ(got->cause, Status::disconnected);
  EXPECT_TRUE(got->after_messages);
  EXPECT_EQ(got->messages, sent.messages);
  EXPECT_EQ(got->detail, sent.detail);
  EXPECT_EQ(got->native_code, -5);
  EXPECT_EQ(got->text, "why");
}

template <typename Frame>
void expect_every_cut_refused(const Frame& frame) {
  const Bytes bytes = encode(frame);
  const auto payload = payload_of(bytes);
  ASSERT_TRUE(decode<Frame>(payload));
  for (std::size_t size = 0; size < payload.size(); ++size) {
    ASSERT_FALSE(decode<Frame>(payload.first(size))) << "cut to " << size;
  }
  Bytes longer(payload.begin(), payload.end());
  longer.push_back({});
  EXPECT_FALSE(decode<Frame>(longer)) << "one byte too many";
}

TEST(Wire, CutAndLengthenedFramesAreRefused) {
  Hello hello = full_hello();
  hello.blob.resize(9);
  hello.private_data.resize(3);
  expect_every_cut_refused(hello);
  expect_every_cut_refused(Welcome{.version = 1, .protocol = 1, .context = {}, .token = {}});
  expect_every_cut_refused(Refuse{.status = Status::incompatible, .text = "text"});
  expect_every_cut_refused(Linked{});
  expect_every_cut_refused(
      Accept{.endpoint = 1, .limits = sound_limits(), .blob = Bytes(5), .private_data = Bytes(2)});
  expect_every_cut_refused(Reject{.private_data = Bytes(4)});
  expect_every_cut_refused(LinkHello{});
  expect_every_cut_refused(End{.endpoint = 1, .text = "x"});
  expect_every_cut_refused(Ring{.endpoint = 1});
}

TEST(Wire, ValuesOutOfRangeAreRefused) {
  EXPECT_FALSE(decode<Ring>(payload_of(encode(Ring{.endpoint = 0}))));
  EXPECT_FALSE(decode<End>(payload_of(encode(End{.endpoint = 1, .cause = Status::local_close, .text = {}}))));
  EXPECT_FALSE(decode<End>(payload_of(encode(End{.endpoint = 1, .cause = Status::ok, .text = {}}))));
  EXPECT_FALSE(decode<End>(payload_of(
      encode(End{.endpoint = 1, .cause = Status::truncated, .after_messages = true, .text = {}}))));
  EXPECT_FALSE(decode<Refuse>(payload_of(encode(Refuse{.status = Status::ok, .text = {}}))));
  EXPECT_FALSE(decode<Refuse>(payload_of(encode(Refuse{.status = static_cast<Status>(200), .text = {}}))));
  EXPECT_FALSE(decode<Welcome>(payload_of(encode(Welcome{.version = 2}))));
  EXPECT_FALSE(decode<Welcome>(payload_of(encode(Welcome{.version = 0}))));
  Hello hello = full_hello();
  hello.protocol = {5, 4};
  EXPECT_FALSE(decode<Hello>(payload_of(encode(hello))));
  hello = full_hello();
  hello.endpoint = 0;
  EXPECT_FALSE(decode<Hello>(payload_of(encode(hello))));
}

TEST(Wire, LimitsBelowTheContractAreRefused) {
  const auto decodes = [](void (*change)(Limits&)) {
    Accept accept{.endpoint = 1, .limits = sound_limits(), .blob = {}, .private_data = {}};
    change(accept.limits);
    return decode<Accept>(payload_of(encode(accept))).has_value();
  };
  EXPECT_TRUE(decodes([](Limits&) {}));
  EXPECT_FALSE(decodes([](Limits& l) { l.max_message = (1 << 20) - 1; }));
  EXPECT_FALSE(decodes([](Limits& l) { l.max_transfer = (std::uint64_t{1} << 40) - 1; }));
  EXPECT_FALSE(decodes([](Limits& l) { l.max_inline = 31; }));
  EXPECT_FALSE(decodes([](Limits& l) { l.max_segments = 3; }));
  EXPECT_FALSE(decodes([](Limits& l) { l.send_depth = 0; }));
  EXPECT_FALSE(decodes([](Limits& l) { l.max_outstanding_reads = 0; }));
}

TEST(Wire, BlobsAndTextsBeyondTheirLimitsAreRefused) {
  // The coder does not write such frames, so the sizes are patched in.
  Bytes frame = encode(Reject{.private_data = Bytes(max_private_data)});
  Bytes longer(frame.begin(), frame.end());
  longer.push_back({});
  longer[header_size] = std::byte{(max_private_data + 1) & 0xff};
  longer[header_size + 1] = std::byte{(max_private_data + 1) >> 8};
  EXPECT_TRUE(decode<Reject>(payload_of(frame)));
  EXPECT_FALSE(decode<Reject>(payload_of(longer)));
}

TEST(Wire, TextOfThePeerIsMadePrintable) {
  Refuse frame;
  frame.text = "no\n\x1b[31mreason\x7f";
  const Bytes bytes = encode(frame);
  const auto back = decode<Refuse>(std::span(bytes).subspan(header_size));
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->text, "no??[31mreason?");
}

TEST(Wire, HeadersOfNoKnownTypeOrTooLongAreRefused) {
  Bytes header = encode(Go{});
  ASSERT_EQ(header.size(), header_size);
  const auto decoded = [&header] { return decode_header(std::span<const std::byte, header_size>(header)); };
  EXPECT_TRUE(decoded());
  header[4] = std::byte{9};
  EXPECT_FALSE(decoded());
  header[4] = std::byte{8};
  header[6] = std::byte{1};
  EXPECT_FALSE(decoded());
  header[6] = {};
  header[1] = std::byte{max_payload >> 8};
  header[0] = std::byte{max_payload & 0xff};
  EXPECT_TRUE(decoded());
  header[0] = std::byte{(max_payload & 0xff) + 1};
  EXPECT_FALSE(decoded());
  header[3] = std::byte{0xff};
  EXPECT_FALSE(decoded());
}

TEST(Wire, RandomBytesNeverDoHarm) {
  const auto seed = std::random_device{}();
  std::mt19937 random(seed);
  SCOPED_TRACE("seed " + std::to_string(seed));
  const Bytes sound = encode(full_hello());
  for (int round = 0; round < 2000; ++round) {
    Bytes bytes(payload_of(sound).begin(), payload_of(sound).end());
    for (int i = 0; i < 8; ++i)
      bytes[random() % (i < 4 ? 128 : bytes.size())] = static_cast<std::byte>(random());
    if (const auto hello = decode<Hello>(bytes)) {
      EXPECT_LE(hello->available.size(), max_providers);
      EXPECT_LE(hello->provider.size(), max_name);
      EXPECT_LE(hello->blob.size(), max_blob);
      EXPECT_NE(hello->endpoint, 0U);
    }
    bytes.resize(random() % 64);
    (void)decode<Accept>(bytes);
    (void)decode<End>(bytes);
    (void)decode<Refuse>(bytes);
  }
}

}  // namespace
}  // namespace weft::core::wire
