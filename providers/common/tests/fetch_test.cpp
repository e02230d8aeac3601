// Several offers of one endpoint are fetched at once, and answers to reads are offered as well: what may
// begin before its turn, and that nothing shows of it.
#include <gtest/gtest.h>

#include <algorithm>

#include "offer_pair.hpp"

namespace weft::engine::test {
namespace {

[[nodiscard]] MessageSide::Options several(std::uint32_t most = 4) {
  MessageSide::Options options = pulling_later();
  options.engine.fetches_at_once = most;
  return options;
}

// a's read of b's memory is being fetched.
void begin_read(MessagePair& pair) {
  pair.go_up();
  pair.a.queue.ends_fetches = false;
  ASSERT_EQ(pair.a.post(Operation::read, 0, large, 1, 0), Status::ok);
  pair.settle();
  ASSERT_EQ(pair.a.queue.fetches_under_way(), 1U);
}

// b's fetches go on, and everything comes to rest.
void go_on(MessagePair& pair) {
  pair.b.queue.ends_fetches = true;
  pair.settle();
}

TEST(Fetches, OPS_1_so_many_at_once_and_completed_in_order) {
  for (const std::uint32_t most : {1U, 3U, 4U, 8U, 16U}) {
    MessagePair pair(several(most));
    begin(pair);
    pair.a.fill(100'000, large, 9);
    ASSERT_EQ(pair.a.post(Operation::write, 100'000, large, 11, 600'000), Status::ok);
    // More than can be fetched, or offered, at once.
    constexpr std::uint64_t operations = 20;
    for (std::uint64_t i = 2; i < operations; ++i)
      ASSERT_EQ(pair.a.post(Operation::send, 0, large, 10 + i), Status::ok);
    pair.settle();
    ASSERT_EQ(pair.b.queue.fetches_under_way(), most);
    // The last first.
    while (pair.b.queue.fetches_under_way() > 1) {
      pair.b.queue.end_one_fetch(pair.b.queue.fetches_under_way() - 1);
      EXPECT_TRUE(pair.b.seen.empty()) << "the first is not there";
      if (most == 1) break;
    }
    go_on(pair);
    ASSERT_EQ(pair.b.seen.size(), operations - 1) << pair.b.ends[0].events.what;
    for (std::uint64_t i = 0; i < operations - 1; ++i) EXPECT_EQ(pair.b.seen[i].context, i);
    ASSERT_EQ(pair.a.seen.size(), operations);
    for (std::uint64_t i = 0; i < operations; ++i) EXPECT_EQ(pair.a.seen[i].context, 10 + i);
    EXPECT_TRUE(pair.b.holds(600'000, large, 9));
  }
}

// Deregistering memory waits for what is under way, so that is bounded in bytes, too.
TEST(Fetches, MEM_5_none_begins_ahead_while_much_is_to_come_of_those_under_way) {
  MessageSide::Options options = several(16);
  options.engine.fetch_bytes_at_once = 2 * large - 1;
  MessagePair pair(options);
  begin(pair);
  for (std::uint64_t i = 1; i < 6; ++i) ASSERT_EQ(pair.a.post(Operation::send, 0, large, 10 + i), Status::ok);
  pair.settle();
  EXPECT_EQ(pair.b.queue.fetches_under_way(), 2U);
  pair.b.queue.end_one_fetch(0);
  pair.settle();
  EXPECT_EQ(pair.b.queue.fetches_under_way(), 2U) << "the next begins in place of what came";
  go_on(pair);
  EXPECT_EQ(pair.b.seen.size(), 6U);
}

TEST(Fetches, ORD_1_what_is_not_offered_does_not_come_ahead) {
  MessagePair pair(several());
  begin(pair);
  ASSERT_EQ(pair.a.post(Operation::write, 0, 8, 11, 900'000), Status::ok);
  ASSERT_EQ(pair.a.post(Operation::send, 0, large, 12), Status::ok);
  pair.b.memory[900'000] = std::byte{77};
  pair.settle();
  EXPECT_EQ(pair.b.queue.fetches_under_way(), 1U);
  EXPECT_EQ(pair.b.memory[900'000], std::byte{77});
  go_on(pair);
  EXPECT_EQ(pair.b.seen.size(), 2U);
  EXPECT_EQ(pair.b.memory[900'000], pair.a.memory[0]);
}

TEST(Fetches, ORD_4_a_fenced_one_waits_for_those_before_it) {
  MessagePair pair(several());
  begin(pair, Operation::write);
  const Segment place = pair.a.segment(0, large);
  WorkRequest request;
  request.operation = Operation::write;
  request.flags = Flags::fence;
  request.segments = std::span(&place, 1);
  request.remote = {pair.a.ends[0].peer_memory.token, 500'000};
  request.context = 11;
  ASSERT_EQ(pair.a.ends[0].endpoint->post(&request, 1).status, Status::ok);
  pair.settle();
  EXPECT_EQ(pair.b.queue.fetches_under_way(), 1U);
  go_on(pair);
  EXPECT_EQ(pair.a.seen.size(), 2U);
}

TEST(Fetches, ERR_1_one_too_long_for_its_receive_is_found_in_its_turn) {
  MessagePair pair(several());
  pair.go_up();
  for (const std::uint64_t capacity : {large, large, large - 1, large})
    ASSERT_EQ(pair.b.receive(0, capacity, capacity), Status::ok);
  pair.settle();
  pair.b.queue.ends_fetches = false;
  for (std::uint64_t i = 0; i < 4; ++i) ASSERT_EQ(pair.a.post(Operation::send, 0, large, i), Status::ok);
  pair.settle();
  EXPECT_EQ(pair.b.queue.fetches_under_way(), 2U);
  EXPECT_EQ(pair.b.ends[0].events.failures, 0);
  go_on(pair);
  EXPECT_EQ(pair.b.ends[0].events.failure, Status::truncated);
  EXPECT_EQ(pair.b.ends[0].events.detail, 3U);
  ASSERT_EQ(pair.b.seen.size(), 2U);
}

TEST(Fetches, MEM_4_one_with_a_stale_key_is_found_in_its_turn) {
  MessagePair pair(several());
  pair.go_up();
  std::vector<std::byte> other(large);
  auto region = pair.b.context.register_memory(
      {.address = other.data(), .length = other.size(), .access = weft::Access::remote_write});
  const auto stale = pair.a.ends[0].endpoint->import_key(region->key());
  pair.settle();
  ASSERT_EQ(region->deregister(), Status::ok);
  pair.b.queue.ends_fetches = false;
  ASSERT_EQ(pair.a.post(Operation::write, 0, large, 10, 500'000), Status::ok);
  pair.a.ends[0].peer_memory = stale;
  ASSERT_EQ(pair.a.post(Operation::write, 0, large, 11, 0), Status::ok);
  pair.settle();
  EXPECT_EQ(pair.b.queue.fetches_under_way(), 1U);
  EXPECT_EQ(pair.b.ends[0].events.failures, 0);
  pair.a.fill(0, large, 5);
  go_on(pair);
  EXPECT_EQ(pair.b.ends[0].events.failure, Status::remote_access_error);
  EXPECT_TRUE(pair.b.holds(500'000, large, 5)) << "the one before it is carried out";
  EXPECT_EQ(other[0], std::byte{0});
}

TEST(Fetches, OPS_3_messages_without_receives_wait_and_keep_their_order) {
  MessagePair pair(several());
  pair.go_up();
  ASSERT_EQ(pair.b.receive(0, large, 0), Status::ok);
  pair.settle();
  pair.b.queue.ends_fetches = false;
  for (std::uint64_t i = 0; i < 4; ++i) ASSERT_EQ(pair.a.post(Operation::send, 0, large, i), Status::ok);
  pair.settle();
  EXPECT_EQ(pair.b.queue.fetches_under_way(), 1U);
  for (std::uint64_t i = 1; i < 4; ++i) ASSERT_EQ(pair.b.receive(i * 100'000, large, i), Status::ok);
  go_on(pair);
  ASSERT_EQ(pair.b.seen.size(), 4U) << pair.b.ends[0].events.what;
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_EQ(pair.b.seen[i].context, i);
}

TEST(Fetches, OPS_4_notified_writes_take_the_receives_of_their_turn) {
  MessagePair pair(several());
  begin(pair);
  for (std::uint64_t i = 1; i < 6; ++i) {
    const auto operation = i % 2 == 0 ? Operation::send : Operation::write_with_immediate;
    ASSERT_EQ(pair.a.post(operation, 0, large, 10 + i, 500'000), Status::ok);
  }
  pair.settle();
  EXPECT_EQ(pair.b.queue.fetches_under_way(), 4U);
  pair.b.queue.end_one_fetch(3);
  pair.b.queue.end_one_fetch(1);
  go_on(pair);
  ASSERT_EQ(pair.b.seen.size(), 6U) << pair.b.ends[0].events.what;
  for (std::uint64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(pair.b.seen[i].context, i);
    EXPECT_EQ(pair.b.seen[i].has_immediate, i % 2 == 1);
  }
}

TEST(Fetches, ERR_2_an_end_stops_all) {
  MessagePair pair(several());
  begin(pair);
  for (std::uint64_t i = 1; i < 4; ++i) ASSERT_EQ(pair.a.post(Operation::send, 0, large, 10 + i), Status::ok);
  pair.settle();
  ASSERT_EQ(pair.b.queue.fetches_under_way(), 4U);
  pair.b.queue.end_one_fetch(2);
  pair.b.ends[0].endpoint->end(lost());
  EXPECT_EQ(pair.b.queue.fetches_under_way(), 0U);
  pair.b.seen.clear();
  for (int i = 0; i < 5; ++i) pair.b.poll();
  for (const Completion& entry : pair.b.seen)
    EXPECT_TRUE(entry.operation != Operation::receive || entry.status == Status::cancelled);
  EXPECT_GT(pair.b.seen.size(), 30U);
}

// The peer closed after four messages and its path is gone before they were fetched: they will not come.
TEST(Fetches, CON_7_an_end_after_messages_does_not_wait_for_torn_ones) {
  MessagePair pair(several());
  begin(pair);
  for (std::uint64_t i = 1; i < 4; ++i) ASSERT_EQ(pair.a.post(Operation::send, 0, large, 10 + i), Status::ok);
  pair.settle();
  ASSERT_EQ(pair.b.queue.fetches_under_way(), 4U);
  provider::EndOrder order;
  order.after_messages = true;
  order.messages = 4;
  pair.b.ends[0].endpoint->end(order);
  EXPECT_EQ(pair.b.ends[0].events.finishes, 0);
  pair.b.queue.fail_fetches(5);
  EXPECT_EQ(pair.b.ends[0].events.finishes, 1);
}

TEST(Fetches, PRG_1_two_sides_whose_streams_are_held_hear_of_each_other) {
  MessagePair pair(several());
  begin(pair, Operation::write);
  pair.a.queue.ends_fetches = false;
  ASSERT_EQ(pair.b.post(Operation::write, 0, large, 50, 500'000), Status::ok);
  // More behind each than may leave.
  for (MessageSide* const side : {&pair.a, &pair.b}) {
    for (std::uint64_t i = 0; i < 60; ++i)
      ASSERT_EQ(side->post(Operation::write, 0, 1000, 100 + i, 700'000), Status::ok);
  }
  pair.settle();
  ASSERT_EQ(pair.a.queue.fetches_under_way(), 1U);
  pair.a.queue.ends_fetches = true;
  go_on(pair);
  EXPECT_EQ(pair.a.seen.size(), 61U);
  EXPECT_EQ(pair.b.seen.size(), 61U);
}

// As above, but all at once, so that one transmission could carry far more than may leave behind an offer.
TEST(Fetches, PRG_1_two_sides_that_post_a_large_batch_behind_an_offer_hear_of_each_other) {
  constexpr std::uint64_t singly = 30;  // almost as much as may leave
  constexpr std::uint64_t count = 160;
  constexpr std::uint64_t length = 1000;
  MessageSide::Options options = several();
  options.send_depth = 256;
  MessagePair pair(options);
  begin(pair, Operation::write);
  pair.a.queue.ends_fetches = false;
  ASSERT_EQ(pair.b.post(Operation::write, 0, large, 50, 500'000), Status::ok);
  for (MessageSide* const side : {&pair.a, &pair.b}) {
    const Segment segment = side->segment(0, length);
    std::vector<WorkRequest> requests(count);
    for (WorkRequest& request : requests) {
      request.operation = Operation::write;
      request.segments = std::span(&segment, 1);
      request.remote = {side->ends[0].peer_memory.token, 700'000};
    }
    for (std::uint64_t i = 0; i < singly; ++i)
      ASSERT_EQ(side->ends[0].endpoint->post(requests.data(), 1).accepted, 1U);
    ASSERT_EQ(side->ends[0].endpoint->post(requests.data(), count - singly).accepted, count - singly);
  }
  pair.settle();
  ASSERT_EQ(pair.a.queue.fetches_under_way(), 1U);
  pair.a.queue.ends_fetches = true;
  go_on(pair);
  EXPECT_EQ(pair.a.seen.size(), count + 1);
  EXPECT_EQ(pair.b.seen.size(), count + 1);
}

// A peer may take no message and let itself be fetched from all the same.
TEST(Fetches, SEC_1_what_is_owed_for_many_offers_does_not_grow) {
  MessagePair pair(several());
  begin(pair, Operation::write);
  for (std::uint64_t i = 0; i < 12; ++i)
    ASSERT_EQ(pair.a.post(Operation::write, 0, large, 11 + i, 500'000), Status::ok);
  pair.settle();
  pair.b.ends[0].endpoint->refuses_messages = true;
  pair.b.queue.ends_fetches = true;
  pair.settle();
  EXPECT_EQ(pair.b.queue.fetches_under_way(), 0U);
  pair.b.ends[0].endpoint->refuses_messages = false;
  const std::uint64_t before = pair.a.ends[0].endpoint->heard_of_taken;
  pair.settle();
  EXPECT_EQ(pair.a.ends[0].endpoint->taken, 13U);
  EXPECT_LE(pair.a.ends[0].endpoint->heard_of_taken - before, 2U) << "one word tells of all";
  EXPECT_EQ(pair.a.seen.size(), 13U);
}

// ---- reads

TEST(Fetches, OPS_2_answers_are_fetched_by_who_reads) {
  MessagePair pair(several());
  pair.go_up();
  pair.a.queue.ends_fetches = false;
  pair.b.fill(0, large, 3);
  for (std::uint64_t i = 0; i < 6; ++i)
    ASSERT_EQ(pair.a.post(Operation::read, 100'000 + i * large, large, i, 0), Status::ok);
  pair.settle();
  EXPECT_EQ(pair.a.queue.fetches_under_way(), 4U);
  EXPECT_EQ(pair.b.region->deregister(), Status::again) << "the peer still reads it";
  pair.a.queue.end_one_fetch(1);
  EXPECT_TRUE(pair.a.seen.empty());
  pair.a.queue.ends_fetches = true;
  pair.settle();
  ASSERT_EQ(pair.a.seen.size(), 6U) << pair.a.ends[0].events.what;
  for (std::uint64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(pair.a.seen[i].context, i);
    EXPECT_TRUE(pair.a.holds(100'000 + i * large, large, 3));
  }
  EXPECT_EQ(pair.b.ends[0].endpoint->taken, 6U);
  EXPECT_EQ(pair.b.region->deregister(), Status::ok);
}

TEST(Fetches, MEM_4_no_answer_is_offered_that_the_check_refuses) {
  MessagePair pair(several());
  pair.go_up();
  std::vector<std::byte> other(large);
  auto region = pair.b.context.register_memory(
      {.address = other.data(), .length = other.size(), .access = weft::Access::remote_write});
  pair.a.ends[0].peer_memory = pair.a.ends[0].endpoint->import_key(region->key());
  // A key says what it may be used for; a peer that does not mind asks all the same.
  pair.settle();
  say(pair, frames(header(wire::Type::read, 0, 0), wire::AccessExtension{1, 0, large}));
  EXPECT_EQ(pair.b.ends[0].events.failure, Status::remote_access_error);
  EXPECT_EQ(pair.a.queue.fetches_under_way(), 0U);
}

TEST(Fetches, PRG_1_neither_answers_nor_operations_starve_in_the_stream) {
  MessageSide::Options options = several();
  options.engine.offer_from = 40'000;
  MessagePair pair(options);
  pair.go_up();
  // b answers large reads without end, and writes what is not offered.
  std::uint64_t reads = 0;
  for (std::uint64_t i = 0; i < 30; ++i) {
    for (int k = 0; k < 4; ++k)
      reads += pair.a.post(Operation::read, 500'000, large, 1000, 0) == Status::ok ? 1 : 0;
    if (i == 5) {
      ASSERT_EQ(pair.b.post(Operation::write, 0, 20'000, 1, 700'000), Status::ok);
      ASSERT_EQ(pair.a.post(Operation::read, 600'000, 20'000, 2000, 0), Status::ok);
    }
    for (int k = 0; k < 3; ++k) {
      pair.a.poll();
      pair.b.poll();
    }
  }
  EXPECT_EQ(pair.b.seen.size(), 1U) << "while reads still come";
  pair.settle();
  EXPECT_EQ(pair.a.seen.size(), reads + 1);
}

TEST(Fetches, ERR_2_who_is_read_from_withdraws_before_its_end_is_reported) {
  MessagePair pair(several());
  begin_read(pair);
  pair.b.ends[0].endpoint->end(lost());
  EXPECT_EQ(pair.b.ends[0].endpoint->withdrawn, 1);
  pair.a.queue.fail_fetches(5);
  EXPECT_EQ(pair.a.ends[0].events.failure, Status::peer_lost);
  EXPECT_TRUE(pair.a.seen.empty());
}

TEST(Fetches, MEM_5_who_fails_while_it_is_read_from_withdraws_before_memory_goes_back) {
  MessagePair pair(several());
  begin_read(pair);
  pair.b.ends[0].endpoint->path_is_broken = true;
  WorkRequest flush;  // uses no memory of its own
  flush.operation = Operation::flush;
  ASSERT_EQ(pair.b.ends[0].endpoint->post(&flush, 1).status, Status::ok);
  pair.b.poll();
  ASSERT_EQ(pair.b.ends[0].events.failure, Status::peer_lost);
  EXPECT_EQ(pair.b.ends[0].endpoint->withdrawn, 1);
  EXPECT_EQ(pair.b.region->deregister(), Status::ok);
  pair.b.ends[0].endpoint->end(lost());
}

TEST(Fetches, answers_that_cannot_be_offered_travel_in_the_stream) {
  MessagePair pair(several());
  pair.go_up();
  pair.b.ends[0].endpoint->cannot_offer = true;
  pair.b.fill(0, large, 3);
  ASSERT_EQ(pair.a.post(Operation::read, 100'000, large, 1, 0), Status::ok);
  pair.settle();
  EXPECT_EQ(pair.a.seen.size(), 1U);
  EXPECT_TRUE(pair.a.holds(100'000, large, 3));
  EXPECT_EQ(pair.b.ends[0].endpoint->taken, 0U);
  EXPECT_GT(pair.b.ends[0].endpoint->large_payloads, 0);
  EXPECT_GT(pair.a.ends[0].endpoint->large_payloads, 0);
}

TEST(Fetches, SEC_1_answers_that_cannot_be_are_found_out) {
  using wire::Type;
  const std::uint64_t token = 0;
  const auto empty = header(Type::read_data, 0, 0);
  const std::vector<std::vector<std::byte>> lies = {
      frames(empty, header(Type::offer, 8, large - 1), token),
      frames(empty, header(Type::offer, 8, large + 1), token),
      frames(empty, header(Type::offer, 0, large)),
      frames(empty, header(Type::flush, 0, 0), header(Type::offer, 8, large), token),
      // More than was asked for.
      frames(empty, header(Type::offer, 8, large), token, empty, header(Type::offer, 8, large), token, empty,
             header(Type::offer, 8, large), token),
  };
  for (std::size_t i = 0; i < lies.size(); ++i) {
    MessagePair pair(several());
    pair.go_up();
    pair.b.queue.ends_fetches = false;
    for (std::uint64_t k = 0; k < 2; ++k) ASSERT_EQ(pair.b.post(Operation::read, 0, large, k, 0), Status::ok);
    pair.a.queue.inbox.clear();
    say(pair, lies[i]);
    const bool all = i + 1 == lies.size();
    EXPECT_EQ(pair.b.queue.fetches_under_way(), all ? 2U : 0U) << "lie " << i;
    if (all) {
      // Tokens of nothing are not to be read from.
      for (int k = 0; k < 2; ++k) pair.b.queue.end_one_fetch(0, false);
      pair.b.poll();
    }
    EXPECT_EQ(pair.b.ends[0].events.failure, Status::protocol) << "lie " << i;
  }
}

TEST(Fetches, nothing_is_offered_before_the_peer_can_fetch) {
  MessageSide::Options options = several();
  options.weather.pulls = false;
  MessagePair pair(options);
  pair.go_up();
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_EQ(pair.b.receive(0, large, i), Status::ok);
  pair.settle();
  ASSERT_EQ(pair.a.post(Operation::send, 0, large, 10), Status::ok);
  pair.settle();
  EXPECT_EQ(pair.b.seen.size(), 1U);
  EXPECT_EQ(pair.a.ends[0].endpoint->taken, 0U);
  EXPECT_GT(pair.b.ends[0].endpoint->large_payloads, 0) << "the time to make ready";
  pair.b.ends[0].endpoint->can_pull_now();
  pair.settle();
  ASSERT_EQ(pair.a.post(Operation::send, 0, large, 11), Status::ok);
  pair.settle();
  EXPECT_EQ(pair.b.seen.size(), 2U);
  EXPECT_EQ(pair.a.ends[0].endpoint->taken, 1U);
}

}  // namespace
}  // namespace weft::engine::test
