// What a side with shared receives says of the window its peer may fill, and when (OPS-3, RCQ-2).
#include <gtest/gtest.h>

#include "pair.hpp"

namespace weft::engine::test {
namespace {

constexpr std::uint64_t small = 64;

Side::Options shared_receives() {
  Side::Options options;
  options.shared = true;
  return options;
}

// One message from a to b, whose receive is there.
void send_small(Pair& pair) {
  ASSERT_EQ(pair.b.receive(pair.b.segment(0, small), 1), Status::ok);
  ASSERT_EQ(pair.a.send(pair.a.segment(0, small), 1, Flags::unsignalled), Status::ok);
  while (pair.b.endpoint->deliver()) {
  }
  Pair::take(pair.b);
  ASSERT_EQ(pair.b.seen.size(), 1U);
  pair.b.seen.clear();
}

// Each endpoint of many would otherwise owe its peer a word for each message, sent by itself a while later.
TEST(Window, OPS_3_of_shared_receives_is_told_by_the_quarter) {
  Pair pair({}, shared_receives());
  pair.go_up();
  const std::uint64_t window = pair.b.context.options().window;
  const std::uint64_t messages = 20 * window / Unexpected::charge(small);
  const std::size_t before = pair.b.endpoint->transmissions;
  for (std::uint64_t i = 0; i < messages; ++i) {
    send_small(pair);
    if (HasFatalFailure()) return;
    ASSERT_FALSE(pair.b.queue.holds_back()) << i;
    while (pair.a.endpoint->deliver()) {
    }
  }
  const std::size_t updates = pair.b.endpoint->transmissions - before;
  EXPECT_GE(updates, 20U);  // more than one window went through
  EXPECT_LE(updates, 20U * 4 + 1);
}

TEST(Window, OPS_3_an_answer_carries_no_news_of_a_few_bytes) {
  Pair pair({}, shared_receives());
  pair.go_up();
  send_small(pair);
  pair.b.endpoint->capturing = true;
  ASSERT_EQ(pair.a.receive(pair.a.segment(0, small), 1), Status::ok);
  while (pair.b.endpoint->deliver()) {
  }
  ASSERT_EQ(pair.b.send(pair.b.segment(0, small), 2), Status::ok);
  EXPECT_EQ(pair.b.endpoint->captured.size(), sizeof(wire::Header) + small);
}

// Nearly a quarter of the window is free again and the peer has not heard: it announces what does not fit the
// rest, and is answered.
TEST(Window, RCQ_2_a_message_that_fits_only_what_was_not_told_comes_without_help) {
  Pair pair({}, shared_receives());
  pair.go_up();
  const std::uint64_t window = pair.b.context.options().window;
  const std::uint64_t untold = window / 4 / Unexpected::charge(small) - 1;
  for (std::uint64_t i = 0; i < untold; ++i) {
    send_small(pair);
    if (HasFatalFailure()) return;
  }
  const std::uint64_t large = window - 2 * Unexpected::unit;
  ASSERT_LE(Unexpected::charge(large), window);
  pair.a.fill(0, large, 3);
  ASSERT_EQ(pair.b.receive(pair.b.segment(0, large), 1), Status::ok);
  ASSERT_EQ(pair.a.send(pair.a.segment(0, large), 1), Status::ok);
  pair.deliver_all();
  Pair::take(pair.b);
  ASSERT_EQ(pair.b.seen.size(), 1U);
  EXPECT_EQ(pair.b.seen[0].bytes, large);
  EXPECT_TRUE(pair.b.holds(0, large, 3));
}

// A sender whose sends complete when they are matched learns of that from the window.
TEST(Window, CMP_1_a_sender_that_waits_for_the_match_is_told_of_each) {
  Pair pair({}, shared_receives(), true);
  pair.go_up();
  for (std::uint64_t i = 0; i < 200; ++i) {
    ASSERT_EQ(pair.b.receive(pair.b.segment(0, small), i), Status::ok);
    ASSERT_EQ(pair.a.send(pair.a.segment(0, small), i), Status::ok);
    while (pair.b.endpoint->deliver()) {
    }
    ASSERT_TRUE(pair.b.queue.holds_back()) << i;
    pair.b.endpoint->hold_back_no_more();
    while (pair.a.endpoint->deliver()) {
    }
    Pair::take(pair.a);
    Pair::take(pair.b);
    ASSERT_EQ(pair.a.seen.size(), i + 1);
    ASSERT_EQ(pair.a.seen.back().context, i);
  }
}

}  // namespace
}  // namespace weft::engine::test
