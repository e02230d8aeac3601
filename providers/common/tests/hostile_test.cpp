// Frames that no honest peer sends (SEC-1): the endpoint fails with `protocol` or `remote_access_error`,
// memory stays as it was, nothing grows.
#include <gtest/gtest.h>

#include "pair.hpp"

namespace weft::engine::test {
namespace {

class Hostile : public testing::Test {
 protected:
  Hostile() {
    pair_.go_up();
    pair_.a.memory.assign(pair_.a.memory.size(), std::byte{0x77});
  }

  void inject(const std::vector<std::byte>& bytes) {
    pair_.a.endpoint->incoming.insert(pair_.a.endpoint->incoming.end(), bytes.begin(), bytes.end());
    while (pair_.a.endpoint->deliver()) {
    }
  }
  template <class... Parts>
  static std::vector<std::byte> frame(wire::Type type, std::uint8_t flags, std::uint32_t length,
                                      std::uint64_t word, const Parts&... parts) {
    std::vector<std::byte> bytes(sizeof(wire::Header));
    wire::store(bytes.data(), wire::Header{static_cast<std::uint8_t>(type), flags, 0, length, word});
    [[maybe_unused]] const auto append = [&](const auto& part) {
      const std::size_t at = bytes.size();
      bytes.resize(at + sizeof part);
      wire::store(bytes.data() + at, part);
    };
    (append(parts), ...);
    return bytes;
  }
  // A whole write of 8 bytes.
  static std::vector<std::byte> frame_of_slot(std::uint16_t slot, std::uint8_t flags, std::uint64_t offset) {
    auto bytes = frame(wire::Type::whole_write, flags, 8, offset, std::uint64_t{0});
    wire::store(bytes.data() + offsetof(wire::Header, slot), slot);
    return bytes;
  }
  void expect_failure(Status status) {
    EXPECT_EQ(pair_.a.events.failures, 1);
    EXPECT_EQ(pair_.a.events.failure, status) << pair_.a.events.what;
    for (const std::byte byte : pair_.a.memory) ASSERT_EQ(byte, std::byte{0x77});
  }

  Pair pair_;
};

TEST_F(Hostile, unknown_type) {
  for (int i = 0; i < 3; ++i) inject(frame(static_cast<wire::Type>(200), 0, 0, 0));
  expect_failure(Status::protocol);
}
TEST_F(Hostile, type_zero) {
  inject(std::vector<std::byte>(64));
  expect_failure(Status::protocol);
}
TEST_F(Hostile, unknown_flags) {
  inject(frame(wire::Type::flush, 0x80, 0, 0));
  expect_failure(Status::protocol);
}
TEST_F(Hostile, payload_where_none_belongs) {
  inject(frame(wire::Type::flush, 0, 100, 0));
  expect_failure(Status::protocol);
}
TEST_F(Hostile, frame_longer_than_any) {
  inject(frame(wire::Type::send, wire::charged, 0xffffffff, 0xffffffff, wire::SendExtension{}));
  expect_failure(Status::protocol);
}
TEST_F(Hostile, message_above_the_limit) {
  inject(frame(wire::Type::send, wire::charged, 65536, ~std::uint64_t{0}, wire::SendExtension{}));
  expect_failure(Status::protocol);
}
TEST_F(Hostile, message_without_grant_or_charge) {
  inject(frame(wire::Type::send, 0, 0, 0, wire::SendExtension{}));
  expect_failure(Status::protocol);
}
TEST_F(Hostile, early_messages_beyond_the_window) {
  for (int i = 0; i < 2000; ++i) inject(frame(wire::Type::send, wire::charged, 0, 0, wire::SendExtension{}));
  expect_failure(Status::protocol);
}
TEST_F(Hostile, piece_of_the_wrong_length) {
  inject(frame(wire::Type::send, wire::charged, 10, 1000, wire::SendExtension{}));
  expect_failure(Status::protocol);
}
TEST_F(Hostile, more_without_a_beginning) {
  inject(frame(wire::Type::more, 0, 10, 0));
  expect_failure(Status::protocol);
}
TEST_F(Hostile, answers_never_asked_for) {
  inject(frame(wire::Type::read_data, 0, 8, 0, std::uint64_t{1}));
  expect_failure(Status::protocol);
}
TEST_F(Hostile, atomic_answer_to_a_read) {
  ASSERT_EQ(pair_.a.one_sided(Operation::read, pair_.a.segment(0, 8), pair_.at_b(0), 1), Status::ok);
  inject(frame(wire::Type::atomic_data, 0, 0, 5));
  expect_failure(Status::protocol);
}
TEST_F(Hostile, answer_longer_than_the_read) {
  ASSERT_EQ(pair_.a.one_sided(Operation::read, pair_.a.segment(0, 8), pair_.at_b(0), 1), Status::ok);
  inject(frame(wire::Type::read_data, 0, 16, 0, std::uint64_t{1}, std::uint64_t{1}));
  expect_failure(Status::protocol);
}
TEST_F(Hostile, acknowledging_what_was_not_sent) {
  inject(frame(wire::Type::update, 0, 0, 0, wire::UpdateExtension{0, 1, 0}));
  expect_failure(Status::protocol);
}
TEST_F(Hostile, granting_backwards) {
  inject(frame(wire::Type::update, 0, 0, 0, wire::UpdateExtension{~std::uint64_t{0}, 0, 0}));
  expect_failure(Status::protocol);
}
TEST_F(Hostile, giving_back_more_window_than_was_used) {
  inject(frame(wire::Type::update, 0, 0, 1000, wire::UpdateExtension{0, 0, 0}));
  expect_failure(Status::protocol);
}
TEST_F(Hostile, unasked_close_ack) {
  inject(frame(wire::Type::close_ack, 0, 0, 0));
  expect_failure(Status::protocol);
}
TEST_F(Hostile, closing_again_and_again) {
  inject(frame(wire::Type::close, 0, 0, 0));
  inject(frame(wire::Type::close, 0, 0, 0));
  expect_failure(Status::protocol);
}
TEST_F(Hostile, announcement_to_a_queue_that_is_not_shared) {
  inject(frame(wire::Type::announce, 0, 0, 5));
  expect_failure(Status::protocol);
}
TEST_F(Hostile, slots_out_of_order) {
  inject(frame(wire::Type::bind, 0, 0, 4000, wire::BindExtension{}));
  expect_failure(Status::protocol);
}
TEST_F(Hostile, write_with_a_forged_secret) {
  std::uint64_t token = pair_.a.region->token();
  inject(frame(wire::Type::bind, 0, 0, 1, wire::BindExtension{token, {1, 2}}));
  inject(frame(wire::Type::write, 0, 8, 0, wire::AccessExtension{1, 0, 8}, std::uint64_t{0}));
  expect_failure(Status::remote_access_error);
}
TEST_F(Hostile, write_through_an_unbound_slot) {
  inject(frame(wire::Type::write, 0, 8, 0, wire::AccessExtension{99, 0, 8}, std::uint64_t{0}));
  expect_failure(Status::remote_access_error);
}
TEST_F(Hostile, write_past_the_end) {
  inject(frame(wire::Type::write, 0, 8, pair_.a.memory.size() - 7, wire::AccessExtension{0, 0, 8},
               std::uint64_t{0}));
  expect_failure(Status::remote_access_error);
}
TEST_F(Hostile, write_that_wraps) {
  inject(frame(wire::Type::write, 0, 8, ~std::uint64_t{0} - 3, wire::AccessExtension{0, 0, 8},
               std::uint64_t{0}));
  expect_failure(Status::remote_access_error);
}
TEST_F(Hostile, whole_write_through_an_unbound_slot) {
  inject(frame_of_slot(99, 0, 0));
  expect_failure(Status::remote_access_error);
}
TEST_F(Hostile, whole_write_past_the_end) {
  inject(frame_of_slot(0, 0, pair_.a.memory.size() - 7));
  expect_failure(Status::remote_access_error);
}
TEST_F(Hostile, whole_write_that_wraps) {
  inject(frame_of_slot(0, 0, ~std::uint64_t{0} - 3));
  expect_failure(Status::remote_access_error);
}
TEST_F(Hostile, whole_write_with_an_immediate) {
  inject(frame_of_slot(0, wire::immediate, 0));
  expect_failure(Status::protocol);
}
TEST_F(Hostile, whole_send_without_a_grant) {
  inject(frame(wire::Type::whole_send, 0, 0, 0));
  expect_failure(Status::protocol);
}
TEST_F(Hostile, whole_send_with_a_slot) {
  auto bytes = frame(wire::Type::whole_send, wire::charged, 0, 0);
  bytes[2] = std::byte{1};
  inject(bytes);
  expect_failure(Status::protocol);
}
TEST_F(Hostile, whole_send_with_an_immediate_of_more_than_32_bits) {
  inject(frame(wire::Type::whole_send, wire::charged | wire::immediate, 0, std::uint64_t{1} << 32));
  expect_failure(Status::protocol);
}
TEST_F(Hostile, whole_send_longer_than_any_frame) {
  inject(frame(wire::Type::whole_send, wire::charged, 0xffffffff, 0));
  expect_failure(Status::protocol);
}
TEST_F(Hostile, misaligned_atomic) {
  inject(frame(wire::Type::atomic, 0, 0, 4, wire::AtomicExtension{0, 0, 1, 0}));
  expect_failure(Status::remote_access_error);
}
TEST_F(Hostile, more_reads_than_agreed) {
  pair_.a.endpoint->peer = nullptr;  // its answers find no room
  for (int i = 0; i < 100; ++i) inject(frame(wire::Type::read, 0, 0, 0, wire::AccessExtension{0, 0, 100000}));
  expect_failure(Status::protocol);
}

// Honest traffic with one byte changed somewhere, and plain noise: whatever happens, no byte outside what was
// granted changes and nothing crashes (sanitizers watch).
TEST(HostileNoise, changed_bytes) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
    Pair pair;
    pair.go_up();
    pair.a.endpoint->capturing = true;
    for (std::uint64_t i = 0; i < 20; ++i) {
      static_cast<void>(pair.b.receive(pair.b.segment(600000, 3000), i));
      static_cast<void>(pair.a.send(pair.a.segment(0, i * 100), i));
      static_cast<void>(pair.a.one_sided(Operation::write, pair.a.segment(0, 100), pair.at_b(i * 64), i));
      static_cast<void>(pair.a.one_sided(Operation::read, pair.a.segment(0, 100), pair.at_b(i * 64), i));
      static_cast<void>(pair.a.one_sided(Operation::fetch_add, pair.a.segment(0, 8), pair.at_b(i * 64), i));
    }
    std::vector<std::byte> traffic = pair.a.endpoint->captured;
    ASSERT_GT(traffic.size(), 1000U);
    for (int changes = 0; changes < 3; ++changes)
      traffic[random() % traffic.size()] = static_cast<std::byte>(random());
    Pair victim;
    victim.go_up();
    for (std::uint64_t i = 0; i < 20; ++i)
      static_cast<void>(victim.b.receive(victim.b.segment(600000, 3000), i));
    victim.b.endpoint->incoming.assign(traffic.begin(), traffic.end());
    while (victim.b.endpoint->deliver()) {
    }
  }
}

}  // namespace
}  // namespace weft::engine::test
