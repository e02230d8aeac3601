// Payload that the target fetches itself: order, completions, and every way in which it can end early.
#include <gtest/gtest.h>

#include "offer_pair.hpp"

namespace weft::engine::test {
namespace {

TEST(Offers, OPS_9_messages_writes_and_reads_of_any_size_over_any_weather) {
  for (int weather = 0; weather < 5; ++weather) {
    MessageSide::Options options = pulling();
    options.weather.seed = static_cast<std::uint64_t>(weather) + 1;
    options.messages.pull_step = 20'000;
    options.weather.pulls_later = weather == 1 ? 1 : weather == 4 ? 0.5 : 0;
    options.weather.refuses = weather >= 2 ? 0.3 : 0;
    options.weather.reach = weather >= 3 ? 5 : 1;
    options.weather.later = weather >= 3 ? 0.3 : 0;
    options.weather.mixes_fetches = weather == 4;
    options.engine.fetches_at_once = weather == 0 ? 1 : static_cast<std::uint32_t>(weather);
    options.weather.most_delivered = weather >= 3 ? 3 : 1000;
    MessagePair pair(options);
    pair.go_up();
    for (std::uint64_t round = 0; round < 40; ++round) {
      const std::uint64_t length = round * 3571 % 100'000;
      pair.b.memory.assign(pair.b.memory.size(), std::byte{0});
      pair.a.seen.clear();
      pair.b.seen.clear();
      pair.a.fill(0, length, round);
      pair.a.fill(500'000, 64, round + 1);
      ASSERT_EQ(pair.b.receive(0, 100'000, 1), Status::ok);
      ASSERT_EQ(pair.b.receive(300'000, 64, 2), Status::ok);
      ASSERT_EQ(pair.a.post(Operation::send, 0, length, 10), Status::ok);
      ASSERT_EQ(pair.a.post(Operation::write, 0, length, 11, 600'000), Status::ok);
      ASSERT_EQ(pair.a.post(Operation::send, 500'000, 64, 12), Status::ok);
      ASSERT_EQ(pair.a.post(Operation::read, 800'000, length, 13, 600'000), Status::ok);
      // The other way at the same time.
      ASSERT_EQ(pair.a.receive(900'000, 50'000, 3), Status::ok);
      ASSERT_EQ(pair.b.post(Operation::send, 700'000, 50'000, 20), Status::ok);
      pair.settle();
      ASSERT_EQ(pair.b.seen.size(), 3U) << "weather " << weather << ", round " << round << ": "
                                        << pair.b.ends[0].events.what << pair.a.ends[0].events.what;
      ASSERT_TRUE(pair.b.holds(0, length, round));
      ASSERT_TRUE(pair.b.holds(300'000, 64, round + 1));
      ASSERT_TRUE(pair.b.holds(600'000, length, round));
      ASSERT_TRUE(pair.a.holds(800'000, length, round));
      ASSERT_EQ(pair.a.seen.size(), 5U);
    }
    EXPECT_GT(pair.a.ends[0].endpoint->taken, 40U);
    EXPECT_GT(pair.b.ends[0].endpoint->taken, 30U);
  }
}

TEST(Offers, ORD_1_nothing_overtakes_what_is_being_fetched) {
  MessagePair pair(pulling_later());
  begin(pair);
  pair.a.fill(200'000, 8, 1);
  for (std::uint64_t i = 0; i < 10; ++i)
    ASSERT_EQ(pair.a.post(Operation::send, 200'000, 8, 11 + i), Status::ok);
  ASSERT_EQ(pair.a.post(Operation::send, 0, large, 30), Status::ok);
  pair.settle();
  EXPECT_TRUE(pair.b.seen.empty());
  EXPECT_TRUE(pair.a.seen.empty()) << "the memory is still read";
  pair.b.queue.ends_fetches = true;
  pair.settle();
  ASSERT_EQ(pair.b.seen.size(), 12U) << pair.b.ends[0].events.what;
  for (std::uint64_t i = 0; i < 12; ++i) EXPECT_EQ(pair.b.seen[i].context, i);
  EXPECT_EQ(pair.b.seen[0].bytes, large);
  ASSERT_EQ(pair.a.seen.size(), 12U);
  EXPECT_EQ(pair.a.seen[0].context, 10U);
}

TEST(Offers, PRG_1_little_leaves_behind_an_open_offer_and_answers_are_not_starved) {
  MessagePair pair(pulling_later());
  begin(pair, Operation::write);
  // More than the peer would keep.
  std::uint64_t posted = 0;
  for (std::uint64_t i = 0; i < 60; ++i)
    posted += pair.a.post(Operation::write, 0, 1000, 100 + i, i * 1000) == Status::ok ? 1 : 0;
  // The peer's read is answered in the stream that the offer stops.
  ASSERT_EQ(pair.b.post(Operation::read, 700'000, large, 50, 0), Status::ok);
  pair.settle();
  EXPECT_TRUE(pair.b.seen.empty());
  pair.b.queue.ends_fetches = true;
  pair.settle();
  EXPECT_EQ(pair.b.ends[0].events.failures, 0) << pair.b.ends[0].events.what;
  EXPECT_EQ(pair.a.seen.size(), posted + 1);
  ASSERT_EQ(pair.b.seen.size(), 1U);
  EXPECT_TRUE(pair.b.holds(700'000, large, 5));
}

TEST(Offers, OPS_1_so_many_open_offers_and_no_more) {
  MessagePair pair(pulling_later());
  begin(pair);
  for (std::uint64_t i = 1; i < 30; ++i)
    ASSERT_EQ(pair.a.post(Operation::send, 0, large, 10 + i), Status::ok);
  pair.settle();
  EXPECT_EQ(pair.b.ends[0].events.failures, 0) << pair.b.ends[0].events.what;
  pair.b.queue.ends_fetches = true;
  pair.settle();
  EXPECT_EQ(pair.b.seen.size(), 30U) << pair.b.ends[0].events.what;
  EXPECT_EQ(pair.a.seen.size(), 30U);
}

TEST(Offers, MEM_5_memory_on_either_side_is_kept_until_it_is_fetched) {
  MessagePair pair(pulling_later());
  begin(pair, Operation::write);
  EXPECT_EQ(pair.a.region->deregister(), Status::busy);
  // Receives of b's are in the same region: of another endpoint's doing, and so is this.
  std::vector<std::byte> other(large);
  const auto region = pair.b.context.register_memory(
      {.address = other.data(), .length = other.size(), .access = weft::Access::remote_write});
  const auto imported = pair.a.ends[0].endpoint->import_key(region->key());
  pair.b.queue.ends_fetches = true;
  pair.settle();
  pair.b.queue.ends_fetches = false;
  pair.a.ends[0].peer_memory = imported;
  ASSERT_EQ(pair.a.post(Operation::write, 0, large, 11, 0), Status::ok);
  pair.settle();
  ASSERT_EQ(pair.b.queue.fetches_under_way(), 1U);
  EXPECT_EQ(region->deregister(), Status::again);
  EXPECT_EQ(other[0], std::byte{0});
  pair.b.queue.ends_fetches = true;
  pair.settle();
  EXPECT_EQ(region->deregister(), Status::ok);
  EXPECT_EQ(other[0], pair.a.memory[0]);
  EXPECT_EQ(pair.a.seen.size(), 2U);
}

TEST(Offers, MEM_4_nothing_is_fetched_for_what_the_check_refuses) {
  MessagePair pair(pulling());
  pair.go_up();
  std::vector<std::byte> other(large);
  auto region = pair.b.context.register_memory(
      {.address = other.data(), .length = other.size(), .access = weft::Access::remote_write});
  pair.a.ends[0].peer_memory = pair.a.ends[0].endpoint->import_key(region->key());
  pair.settle();
  ASSERT_EQ(region->deregister(), Status::ok);
  pair.a.fill(0, large, 5);
  ASSERT_EQ(pair.a.post(Operation::write, 0, large, 10, 0), Status::ok);
  pair.settle();
  EXPECT_EQ(pair.b.ends[0].events.failure, Status::remote_access_error);
  EXPECT_EQ(pair.b.ends[0].endpoint->fetched_at_once, 0);
  EXPECT_EQ(other[0], std::byte{0});
}

TEST(Offers, ERR_1_a_message_too_long_for_its_receive_is_not_fetched) {
  MessagePair pair(pulling());
  pair.go_up();
  ASSERT_EQ(pair.b.receive(0, 10'000, 1), Status::ok);
  pair.settle();
  ASSERT_EQ(pair.a.post(Operation::send, 0, large, 10), Status::ok);
  pair.settle();
  EXPECT_EQ(pair.b.ends[0].events.failure, Status::truncated);
  EXPECT_EQ(pair.b.ends[0].endpoint->fetched_at_once, 0);
}

TEST(Offers, ERR_2_an_end_at_the_target_stops_what_is_fetched) {
  for (const bool fails_first : {false, true}) {
    MessagePair pair(pulling_later());
    begin(pair);
    if (fails_first) {
      pair.b.ends[0].endpoint->path_is_broken = true;
      ASSERT_EQ(pair.b.post(Operation::send, 0, 8, 1), Status::ok);
      EXPECT_EQ(pair.b.ends[0].events.failures, 1);
      EXPECT_EQ(pair.b.ends[0].endpoint->stopped, 1) << "a broken endpoint may lose its memory at any time";
    }
    pair.b.ends[0].endpoint->end(lost());
    EXPECT_EQ(pair.b.ends[0].endpoint->stopped, 1);
    EXPECT_EQ(pair.b.queue.fetches_under_way(), 0U);
    pair.b.seen.clear();
    for (int i = 0; i < 5; ++i) pair.b.poll();
    for (const Completion& entry : pair.b.seen) {
      EXPECT_TRUE(entry.operation != Operation::receive || entry.status == Status::cancelled);
    }
    EXPECT_GT(pair.b.seen.size(), 30U);
    EXPECT_EQ(pair.b.memory[0], std::byte{0});
  }
}

TEST(Offers, ERR_2_an_end_at_the_initiator_withdraws_before_anything_is_reported) {
  MessagePair pair(pulling_later());
  begin(pair);
  EXPECT_EQ(pair.a.ends[0].endpoint->withdrawn, 0);
  pair.a.ends[0].endpoint->end(lost());
  EXPECT_EQ(pair.a.ends[0].endpoint->withdrawn, 1);
  pair.a.poll();
  ASSERT_FALSE(pair.a.seen.empty());
  EXPECT_EQ(pair.a.seen[0].context, 10U);
  EXPECT_EQ(pair.a.seen[0].status, Status::cancelled);
}

TEST(Offers, ERR_3_a_fetch_that_fails_ends_the_endpoint) {
  for (const bool at_once : {false, true}) {
    MessagePair pair(at_once ? pulling() : pulling_later());
    if (at_once) {
      pair.go_up();
      ASSERT_EQ(pair.b.receive(0, large, 1), Status::ok);
      pair.settle();
      ASSERT_EQ(pair.a.post(Operation::send, 0, large, 10), Status::ok);
      pair.b.ends[0].endpoint->path_is_broken = true;
      pair.settle();
    } else {
      begin(pair);
      pair.b.queue.fail_fetches(5);
    }
    EXPECT_EQ(pair.b.ends[0].events.failure, Status::peer_lost);
    EXPECT_TRUE(pair.b.seen.empty());
  }
}

TEST(Offers, CON_7_a_graceful_close_waits_for_what_is_fetched) {
  MessagePair pair(pulling_later());
  begin(pair);
  pair.a.ends[0].endpoint->drain();
  pair.settle();
  EXPECT_EQ(pair.a.ends[0].events.drains, 0);
  pair.b.queue.ends_fetches = true;
  pair.settle();
  EXPECT_EQ(pair.a.ends[0].events.drains, 1);
  EXPECT_EQ(pair.a.ends[0].events.drained_messages, 1U);
}

TEST(Offers, what_cannot_be_offered_travels_in_the_stream) {
  MessagePair pair(pulling());
  pair.go_up();
  pair.a.ends[0].endpoint->cannot_offer = true;
  ASSERT_EQ(pair.b.receive(0, large, 1), Status::ok);
  pair.settle();
  pair.a.fill(0, large, 5);
  ASSERT_EQ(pair.a.post(Operation::send, 0, large, 10), Status::ok);
  pair.settle();
  EXPECT_TRUE(pair.b.holds(0, large, 5));
  EXPECT_EQ(pair.b.ends[0].endpoint->fetched_at_once, 0);
  EXPECT_EQ(pair.a.seen.size(), 1U);
}

TEST(Offers, a_side_that_cannot_fetch_gets_payload_in_the_stream) {
  MessageSide::Options options = pulling();
  options.weather.pulls = false;
  MessagePair pair(options);
  pair.go_up();
  ASSERT_EQ(pair.b.receive(0, large, 1), Status::ok);
  pair.settle();
  pair.a.fill(0, large, 5);
  ASSERT_EQ(pair.a.post(Operation::send, 0, large, 10), Status::ok);
  pair.settle();
  EXPECT_TRUE(pair.b.holds(0, large, 5));
  EXPECT_EQ(pair.a.ends[0].endpoint->taken, 0U);
}

TEST(Offers, SEC_1_offers_that_cannot_be_are_found_out) {
  using wire::Type;
  const std::uint64_t token = 0;
  const wire::SendExtension none{0, 0};
  const std::vector<std::vector<std::byte>> lies = {
      frames(header(Type::offer, 8, large), token),  // of nothing
      frames(header(Type::send, 0, large), none, header(Type::offer, 8, large - 1), token),
      frames(header(Type::send, 0, large), none, header(Type::offer, 8, large + 1), token),
      frames(header(Type::send, 0, large), none, header(Type::offer, 8, 0), token),
      frames(header(Type::send, 0, large), none, header(Type::offer, 0, large)),
      frames(header(Type::send, 0, large), none, header(Type::offer, wire::max_token + 1, large)),
      frames(header(Type::send, 0, large), none, header(Type::more, 0, 0)),
      frames(header(Type::send, 0, large), none, header(Type::send, 0, large), none),
      frames(header(Type::taken, 0, 1)),
      frames(header(Type::taken, 0, 0)),
  };
  for (std::size_t i = 0; i < lies.size(); ++i) {
    MessagePair pair(pulling());
    pair.go_up();
    ASSERT_EQ(pair.b.receive(0, large, 1), Status::ok);
    pair.settle();
    say(pair, lies[i]);
    EXPECT_EQ(pair.b.ends[0].events.failure, Status::protocol) << "lie " << i;
    EXPECT_EQ(pair.b.ends[0].endpoint->fetched_at_once, 0) << "lie " << i;
  }
}

TEST(Offers, SEC_1_a_side_without_offers_takes_none) {
  MessagePair pair;
  pair.go_up();
  ASSERT_EQ(pair.b.receive(0, large, 1), Status::ok);
  pair.settle();
  say(pair, frames(header(wire::Type::send, 0, large), wire::SendExtension{0, 0}));
  EXPECT_EQ(pair.b.ends[0].events.failure, Status::protocol);
}

TEST(Offers, SEC_1_a_token_of_the_wrong_kind_ends_the_endpoint) {
  MessagePair pair(pulling());
  pair.go_up();
  ASSERT_EQ(pair.b.receive(0, large, 1), Status::ok);
  pair.settle();
  say(pair, frames(header(wire::Type::send, 0, large), wire::SendExtension{0, 0},
                   header(wire::Type::offer, 4, large), std::uint32_t{7}));
  pair.b.poll();
  EXPECT_EQ(pair.b.ends[0].events.failure, Status::peer_lost);
}

TEST(Offers, SEC_1_too_much_behind_an_offer) {
  MessagePair pair(pulling_later());
  begin(pair);
  const std::vector<std::byte> flood(8000);
  for (int i = 0; i < 40 && pair.b.ends[0].events.failures == 0; ++i) say(pair, flood);
  EXPECT_EQ(pair.b.ends[0].events.failure, Status::protocol);
  EXPECT_EQ(pair.b.ends[0].endpoint->stopped, 1);
}

}  // namespace
}  // namespace weft::engine::test
