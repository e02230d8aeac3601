// The engine's operations over streams of every weather.
#include <gtest/gtest.h>

#include "pair.hpp"

namespace weft::engine::test {
namespace {

using weft::Completion;
using weft::Operation;
using weft::Status;

// calm; torn everywhere; little room.
class Transfer : public testing::TestWithParam<int> {
 protected:
  [[nodiscard]] static Side::Options options() {
    Side::Options options;
    switch (GetParam()) {
      case 1:
        options.weather.most_taken = 37;
        options.weather.most_delivered = 23;
        break;
      case 2:
        options.weather.capacity = 500;
        options.weather.most_delivered = 90;
        break;
      case 3:
        options.engine.frame_payload = 4096;
        options.engine.copy_below = 16;
        break;
      default:
        break;
    }
    options.weather.seed = static_cast<std::uint64_t>(GetParam()) + 7;
    return options;
  }
};
INSTANTIATE_TEST_SUITE_P(Weather, Transfer, testing::Range(0, 4));

TEST_P(Transfer, OPS_3_messages_of_many_sizes_arrive_whole_and_in_order) {
  Pair pair(options(), options());
  pair.go_up();
  const std::vector<std::uint64_t> sizes = {0,    1,    63,    64,    65,    1023,  1024,
                                            1025, 4096, 65535, 65536, 65537, 200000};
  std::uint64_t number = 0;
  for (const std::uint64_t size : sizes) {
    pair.a.fill(0, size, static_cast<std::uint8_t>(number));
    ASSERT_EQ(pair.b.receive(pair.b.segment(0, 300000), 100 + number), Status::ok);
    ASSERT_EQ(pair.a.send(pair.a.segment(0, size), number), Status::ok);
    pair.settle();
    ASSERT_EQ(pair.a.seen.size(), 1U) << size;
    EXPECT_EQ(pair.a.seen[0].context, number);
    EXPECT_EQ(pair.a.seen[0].bytes, size);
    EXPECT_EQ(pair.a.seen[0].status, Status::ok);
    EXPECT_EQ(pair.a.seen[0].user_value, 1000U);
    ASSERT_EQ(pair.b.seen.size(), 1U) << size;
    EXPECT_EQ(pair.b.seen[0].context, 100 + number);
    EXPECT_EQ(pair.b.seen[0].bytes, size);
    EXPECT_EQ(pair.b.seen[0].operation, Operation::receive);
    EXPECT_TRUE(pair.b.holds(0, size, static_cast<std::uint8_t>(number))) << size;
    pair.a.seen.clear();
    pair.b.seen.clear();
    ++number;
  }
}

TEST_P(Transfer, OPS_3_messages_before_their_receives_wait) {
  Pair pair(options(), options());
  pair.go_up();
  constexpr std::uint64_t count = 40;
  for (std::uint64_t i = 0; i < count; ++i) {
    pair.a.fill(i * 3000, 3000, static_cast<std::uint8_t>(i));
    ASSERT_EQ(pair.a.send(pair.a.segment(i * 3000, 3000), i), Status::ok);
  }
  pair.settle();
  EXPECT_TRUE(pair.b.seen.empty());
  EXPECT_LT(pair.a.seen.size(), count) << "more than the window was accepted as sent";
  for (std::uint64_t i = 0; i < count; ++i) {
    ASSERT_EQ(pair.b.receive(pair.b.segment(i * 3000, 3000), i), Status::ok);
    if (i % 7 == 0) pair.settle();
  }
  pair.settle();
  ASSERT_EQ(pair.a.seen.size(), count);
  ASSERT_EQ(pair.b.seen.size(), count);
  for (std::uint64_t i = 0; i < count; ++i) {
    EXPECT_EQ(pair.a.seen[i].context, i);
    EXPECT_EQ(pair.b.seen[i].context, i);
    EXPECT_TRUE(pair.b.holds(i * 3000, 3000, static_cast<std::uint8_t>(i))) << i;
  }
}

TEST_P(Transfer, OPS_4_immediates) {
  Pair pair(options(), options());
  pair.go_up();
  for (std::uint64_t i = 0; i < 4; ++i) ASSERT_EQ(pair.b.receive(pair.b.segment(500000, 100), i), Status::ok);
  pair.a.fill(0, 5000, 3);
  ASSERT_EQ(pair.a.send(pair.a.segment(0, 10), 1, Flags::with_immediate, 0xdeadbeef), Status::ok);
  ASSERT_EQ(
      pair.a.one_sided(Operation::write_with_immediate, pair.a.segment(0, 5000), pair.at_b(100), 0x12345678),
      Status::ok);
  ASSERT_EQ(pair.a.one_sided(Operation::write_with_immediate, {}, {}, 77), Status::ok);
  pair.settle();
  ASSERT_EQ(pair.b.seen.size(), 3U);
  EXPECT_TRUE(pair.b.seen[0].has_immediate);
  EXPECT_EQ(pair.b.seen[0].immediate, 0xdeadbeef);
  EXPECT_EQ(pair.b.seen[1].immediate, 0x12345678U);
  EXPECT_EQ(pair.b.seen[1].bytes, 5000U);
  EXPECT_TRUE(pair.b.holds(100, 5000, 3));
  EXPECT_EQ(pair.b.seen[2].immediate, 77U);
  EXPECT_EQ(pair.b.seen[2].bytes, 0U);
}

TEST_P(Transfer, OPS_4_write_with_immediate_waits_for_a_receive) {
  Pair pair(options(), options());
  pair.go_up();
  pair.a.fill(0, 100000, 9);
  ASSERT_EQ(pair.a.one_sided(Operation::write_with_immediate, pair.a.segment(0, 100000), pair.at_b(0), 5),
            Status::ok);
  pair.settle();
  EXPECT_TRUE(pair.b.seen.empty());
  ASSERT_EQ(pair.b.receive(pair.b.segment(600000, 8), 50), Status::ok);
  pair.settle();
  ASSERT_EQ(pair.b.seen.size(), 1U);
  EXPECT_EQ(pair.b.seen[0].bytes, 100000U);
  EXPECT_EQ(pair.b.seen[0].immediate, 5U);
  EXPECT_TRUE(pair.b.holds(0, 100000, 9));
}

TEST_P(Transfer, OPS_5_reads_writes_and_atomics) {
  Pair pair(options(), options());
  pair.go_up();
  pair.b.fill(0, 150000, 5);
  ASSERT_EQ(pair.a.one_sided(Operation::read, pair.a.segment(1000, 150000), pair.at_b(0), 1), Status::ok);
  ASSERT_EQ(pair.a.one_sided(Operation::read, {}, {}, 2), Status::ok);
  const std::uint64_t start = 41;
  std::memcpy(pair.b.memory.data() + 200000, &start, sizeof start);
  ASSERT_EQ(
      pair.a.one_sided(Operation::fetch_add, pair.a.segment(8, 8), pair.at_b(200000), 3, Flags::none, 1),
      Status::ok);
  ASSERT_EQ(pair.a.one_sided(Operation::compare_swap, pair.a.segment(16, 8), pair.at_b(200000), 4,
                             Flags::none, 99, 42),
            Status::ok);
  ASSERT_EQ(pair.a.one_sided(Operation::compare_swap, pair.a.segment(24, 8), pair.at_b(200000), 5,
                             Flags::none, 7, 42),
            Status::ok);
  pair.settle();
  ASSERT_EQ(pair.a.seen.size(), 5U);
  for (std::uint64_t i = 0; i < 5; ++i) {
    EXPECT_EQ(pair.a.seen[i].context, i + 1);
    EXPECT_EQ(pair.a.seen[i].status, Status::ok);
  }
  EXPECT_EQ(pair.a.seen[0].bytes, 150000U);
  EXPECT_TRUE(pair.a.holds(1000, 150000, 5));
  std::array<std::uint64_t, 3> found{};
  std::memcpy(found.data(), pair.a.memory.data() + 8, sizeof found);
  EXPECT_EQ(found[0], 41U);
  EXPECT_EQ(found[1], 42U);
  EXPECT_EQ(found[2], 99U);
  std::uint64_t value = 0;
  std::memcpy(&value, pair.b.memory.data() + 200000, sizeof value);
  EXPECT_EQ(value, 99U);
}

TEST_P(Transfer, OPS_7_many_segments) {
  Pair pair(options(), options());
  pair.go_up();
  std::vector<Segment> from;
  std::vector<Segment> to;
  std::uint64_t total = 0;
  for (std::uint32_t i = 0; i < max_segments; ++i) {
    const std::uint64_t length = i * i * 97;
    from.push_back(pair.a.segment(total, length));
    to.push_back(pair.b.segment(total, length));
    total += length;
  }
  std::reverse(to.begin(), to.end());
  pair.a.fill(0, total, 11);
  const ReceiveRequest receive{1, to};
  ASSERT_EQ(pair.b.endpoint->post_receives(&receive, 1).status, Status::ok);
  WorkRequest request;
  request.segments = from;
  ASSERT_EQ(pair.a.post(request), Status::ok);
  pair.settle();
  ASSERT_EQ(pair.b.seen.size(), 1U);
  EXPECT_EQ(pair.b.seen[0].bytes, total);
  std::uint64_t at = 0;
  for (const Segment& segment : to) {
    for (std::uint64_t i = 0; i < segment.length; ++i, ++at) {
      ASSERT_EQ(pair.b.memory[segment.offset + i], static_cast<std::byte>(11 + at * 7));
    }
  }
  from.push_back(pair.a.segment(0, 1));
  request.segments = from;
  EXPECT_EQ(pair.a.post(request), Status::invalid_argument);
}

TEST_P(Transfer, OPS_6_inline_bytes_are_taken_at_post) {
  Pair pair(options(), options());
  pair.go_up();
  // Without receives and beyond the window, inline operations wait: their bytes must have been copied.
  Side& a = pair.a;
  std::array<std::byte, 64> bytes{};
  const std::uint64_t blocker = 70000;
  ASSERT_EQ(a.send(a.segment(0, blocker), 0), Status::ok);
  for (std::uint8_t i = 1; i < 20; ++i) {
    bytes.fill(static_cast<std::byte>(i));
    ASSERT_EQ(a.send(Segment::inline_bytes(bytes.data(), i), i, Flags::inline_data), Status::ok);
    bytes.fill(std::byte{0xee});
  }
  EXPECT_EQ(a.send(Segment::inline_bytes(bytes.data(), 65), 1, Flags::inline_data), Status::too_big);
  EXPECT_EQ(a.send(Segment::inline_bytes(bytes.data(), 8), 1), Status::invalid_argument);
  ASSERT_EQ(pair.b.receive(pair.b.segment(0, blocker), 0), Status::ok);
  for (std::uint64_t i = 1; i < 20; ++i) {
    ASSERT_EQ(pair.b.receive(pair.b.segment(100000 + i * 64, 64), i), Status::ok);
  }
  pair.settle();
  ASSERT_EQ(pair.b.seen.size(), 20U);
  for (std::uint64_t i = 1; i < 20; ++i) {
    EXPECT_EQ(pair.b.seen[i].bytes, i);
    for (std::uint64_t at = 0; at < i; ++at) {
      ASSERT_EQ(pair.b.memory[100000 + i * 64 + at], static_cast<std::byte>(i));
    }
  }
}

TEST_P(Transfer, CMP_2_unsignalled_for_ever_and_CMP_1_no_completions) {
  Pair pair(options(), options());
  pair.go_up();
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const Operation operation = i % 3 == 0   ? Operation::read
                                : i % 3 == 1 ? Operation::write
                                             : Operation::send;
    if (operation == Operation::send) {
      ASSERT_EQ(pair.b.receive(pair.b.segment(0, 100), i), Status::ok);
    }
    const auto post = [&] {
      return operation == Operation::send ? pair.a.send(pair.a.segment(0, 100), i, Flags::unsignalled)
                                          : pair.a.one_sided(operation, pair.a.segment(1000, 200),
                                                             pair.at_b(5000), i, Flags::unsignalled);
    };
    Status status = post();
    if (status == Status::again) {
      pair.settle();
      status = post();
    }
    ASSERT_EQ(status, Status::ok) << i;
    if (i % 50 == 0) pair.settle();
  }
  pair.settle();
  EXPECT_TRUE(pair.a.seen.empty());
  ASSERT_EQ(pair.a.one_sided(Operation::flush, {}, {}, 4711), Status::ok);
  pair.settle();
  ASSERT_EQ(pair.a.seen.size(), 1U);
  EXPECT_EQ(pair.a.seen[0].context, 4711U);
  EXPECT_EQ(pair.a.seen[0].operation, Operation::flush);
}

TEST_P(Transfer, RCQ_1_a_shared_receive_queue_serves_small_and_large) {
  Side::Options shared = options();
  shared.shared = true;
  Pair pair(options(), shared);
  pair.go_up();
  const std::vector<std::uint64_t> sizes = {10, 200000, 0, 3000, 90000, 5};
  for (std::uint64_t i = 0; i < sizes.size(); ++i) {
    pair.a.fill(0, sizes[i], static_cast<std::uint8_t>(i));
    ASSERT_EQ(pair.a.send(pair.a.segment(0, sizes[i]), i), Status::ok);
    if (i % 2 == 0) pair.settle();
    ASSERT_EQ(pair.b.receive(pair.b.segment(0, 200000), i), Status::ok);
    pair.settle();
    ASSERT_EQ(pair.b.seen.size(), 1U) << i;
    EXPECT_EQ(pair.b.seen[0].bytes, sizes[i]);
    EXPECT_TRUE(pair.b.holds(0, sizes[i], static_cast<std::uint8_t>(i)));
    pair.b.seen.clear();
  }
}

// An announcement leaves by the post that makes it, not with the next one.
TEST(Announcement, RCQ_1_is_sent_at_once) {
  Side::Options shared;
  shared.shared = true;
  Pair pair({}, shared);
  pair.go_up();
  ASSERT_EQ(pair.b.receive(pair.b.segment(0, 200000), 1), Status::ok);
  ASSERT_EQ(pair.a.send(pair.a.segment(0, 100000), 1), Status::ok);
  pair.deliver_all();
  Pair::take(pair.b);
  ASSERT_EQ(pair.b.seen.size(), 1U);
  EXPECT_EQ(pair.b.seen[0].bytes, 100000U);
}

}  // namespace
}  // namespace weft::engine::test
