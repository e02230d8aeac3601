// Failing and ending: causes, order, what is left in queues, what regions say meanwhile.
#include <gtest/gtest.h>

#include "pair.hpp"

namespace weft::engine::test {
namespace {

using weft::Access;

std::vector<Completion> of(const std::vector<Completion>& seen, Operation operation) {
  std::vector<Completion> found;
  std::copy_if(seen.begin(), seen.end(), std::back_inserter(found),
               [&](const Completion& entry) { return entry.operation == operation; });
  return found;
}

TEST(Ending, ERR_1_a_message_longer_than_its_receive) {
  Pair pair;
  pair.go_up();
  pair.b.memory.assign(pair.b.memory.size(), std::byte{0x5a});
  ASSERT_EQ(pair.b.receive(pair.b.segment(0, 4096), 10), Status::ok);
  ASSERT_EQ(pair.b.receive(pair.b.segment(8192, 4096), 11), Status::ok);
  ASSERT_EQ(pair.b.receive(pair.b.segment(16384, 4096), 12), Status::ok);
  pair.a.fill(0, 8192, 1);
  ASSERT_EQ(pair.a.send(pair.a.segment(0, 100), 1), Status::ok);
  ASSERT_EQ(pair.a.send(pair.a.segment(0, 4097), 2), Status::ok);
  ASSERT_EQ(pair.a.send(pair.a.segment(0, 100), 3), Status::ok);
  pair.settle();
  ASSERT_EQ(pair.b.events.failures, 1);
  EXPECT_EQ(pair.b.events.failure, Status::truncated);
  EXPECT_EQ(pair.b.events.detail, 2U);
  EXPECT_NE(pair.b.events.what.find("4097"), std::string::npos);
  EXPECT_NE(pair.b.events.what.find("4096"), std::string::npos);
  provider::EndOrder order;
  order.cause = Status::truncated;
  pair.b.endpoint->end(order);
  EXPECT_EQ(pair.b.events.finishes, 1);
  Pair::take(pair.b);
  ASSERT_EQ(pair.b.seen.size(), 4U);
  EXPECT_EQ(pair.b.seen[0].status, Status::ok);
  EXPECT_EQ(pair.b.seen[1].status, Status::truncated);
  EXPECT_EQ(pair.b.seen[1].context, 11U);
  EXPECT_EQ(pair.b.seen[1].bytes, 0U);
  EXPECT_EQ(pair.b.seen[2].status, Status::cancelled);
  EXPECT_EQ(pair.b.seen[2].context, 12U);
  EXPECT_EQ(pair.b.seen[3].operation, Operation::endpoint_ended);
  EXPECT_EQ(pair.b.seen[3].status, Status::truncated);
  for (std::size_t i = 4096; i < 8192; ++i) ASSERT_EQ(pair.b.memory[i], std::byte{0x5a});
  for (std::size_t i = 12288; i < 16384; ++i) ASSERT_EQ(pair.b.memory[i], std::byte{0x5a});
  EXPECT_EQ(pair.b.send({}, 1), Status::not_connected);
  EXPECT_EQ(pair.b.receive({}, 1), Status::not_connected);
}

TEST(Ending, MEM_4_a_region_that_is_gone_is_not_touched_and_the_operation_at_fault_is_named) {
  Pair pair;
  pair.go_up();
  ASSERT_EQ(pair.a.one_sided(Operation::write, pair.a.segment(0, 8), pair.at_b(0), 1), Status::ok);
  pair.settle();
  pair.a.seen.clear();
  ASSERT_EQ(pair.b.region->deregister(), Status::ok);
  pair.b.memory.assign(pair.b.memory.size(), std::byte{0x11});
  ASSERT_EQ(pair.a.one_sided(Operation::write, pair.a.segment(0, 8), pair.at_b(0), 2), Status::ok);
  ASSERT_EQ(pair.a.one_sided(Operation::write, pair.a.segment(0, 8), pair.at_b(0), 3, Flags::unsignalled),
            Status::ok);
  ASSERT_EQ(pair.a.one_sided(Operation::read, pair.a.segment(0, 8), pair.at_b(0), 4), Status::ok);
  pair.settle();
  EXPECT_EQ(pair.b.events.failure, Status::remote_access_error);
  for (const std::byte byte : pair.b.memory) ASSERT_EQ(byte, std::byte{0x11});
  // The peer's cause arrives with its detail, as the core carries it.
  provider::EndOrder order;
  order.cause = Status::remote_access_error;
  order.detail = pair.b.events.detail;
  pair.a.endpoint->end(order);
  Pair::take(pair.a);
  ASSERT_EQ(pair.a.seen.size(), 4U);
  EXPECT_EQ(pair.a.seen[0].context, 2U);
  EXPECT_EQ(pair.a.seen[0].status, Status::remote_access_error);
  EXPECT_EQ(pair.a.seen[1].context, 3U) << "an unsignalled operation that fails is reported (CMP-1)";
  EXPECT_EQ(pair.a.seen[1].status, Status::cancelled);
  EXPECT_EQ(pair.a.seen[2].context, 4U);
  EXPECT_EQ(pair.a.seen[2].status, Status::cancelled);
  EXPECT_EQ(pair.a.seen[3].operation, Operation::endpoint_ended);
}

TEST(Ending, ERR_2_the_peers_word_counts_although_the_path_broke_first) {
  Pair pair;
  pair.go_up();
  ASSERT_EQ(pair.a.one_sided(Operation::write, pair.a.segment(0, 8), pair.at_b(0), 1), Status::ok);
  pair.a.endpoint->lose_path();
  EXPECT_EQ(pair.a.events.failure, Status::peer_lost);
  provider::EndOrder order;
  order.cause = Status::remote_access_error;
  order.detail = 1;
  pair.a.endpoint->end(order);
  Pair::take(pair.a);
  ASSERT_EQ(pair.a.seen.size(), 2U);
  EXPECT_EQ(pair.a.seen[0].status, Status::remote_access_error);
  EXPECT_EQ(pair.a.seen[1].status, Status::remote_access_error);
}

TEST(Ending, MEM_4_what_the_key_excludes_is_refused_at_post) {
  Pair pair;
  pair.go_up();
  const std::uint64_t size = pair.b.memory.size();
  const auto write = [&](std::uint64_t offset, std::uint64_t length) {
    return pair.a.one_sided(Operation::write, pair.a.segment(0, length), pair.at_b(offset), 1);
  };
  EXPECT_EQ(write(size - 1, 1), Status::ok);
  EXPECT_EQ(write(size - 1, 2), Status::invalid_argument);
  EXPECT_EQ(write(size, 1), Status::invalid_argument);
  EXPECT_EQ(write(~std::uint64_t{0}, 2), Status::invalid_argument);
  EXPECT_EQ(pair.a.one_sided(Operation::fetch_add, pair.a.segment(0, 8), pair.at_b(4), 1),
            Status::invalid_argument);
  EXPECT_EQ(pair.a.one_sided(Operation::fetch_add, pair.a.segment(0, 4), pair.at_b(8), 1),
            Status::invalid_argument);
  const auto read_only = pair.b.context.register_memory(
      {.address = pair.b.memory.data(), .length = 4096, .access = Access::remote_read});
  const auto imported = pair.a.endpoint->import_key(read_only->key());
  EXPECT_EQ(pair.a.one_sided(Operation::write, pair.a.segment(0, 8), {imported.token, 0}, 1),
            Status::invalid_argument);
  EXPECT_EQ(pair.a.one_sided(Operation::read, pair.a.segment(0, 8), {imported.token, 0}, 1), Status::ok);
  pair.a.endpoint->release_key(imported.token);
  EXPECT_EQ(pair.a.one_sided(Operation::read, pair.a.segment(0, 8), {imported.token, 0}, 1),
            Status::invalid_argument);
  pair.settle();
  EXPECT_EQ(pair.b.events.failures, 0);
  EXPECT_EQ(read_only->deregister(), Status::ok);
}

TEST(Ending, MEM_3_an_altered_key_is_refused) {
  Pair pair;
  pair.go_up();
  std::vector<std::byte> key(pair.b.region->key().begin(), pair.b.region->key().end());
  for (std::size_t bit = 0; bit < key.size() * 8; ++bit) {
    key[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
    EXPECT_THROW(static_cast<void>(pair.a.endpoint->import_key(key)), Error) << "bit " << bit;
    key[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
  }
  key.pop_back();
  EXPECT_THROW(static_cast<void>(pair.a.endpoint->import_key(key)), Error);
}

TEST(Ending, MEM_5_deregister_answers_busy_while_an_operation_uses_the_region) {
  Pair pair;
  pair.go_up();
  ASSERT_EQ(pair.a.send(pair.a.segment(0, 200000), 1), Status::ok);  // waits for a receive
  EXPECT_EQ(pair.a.region->deregister(), Status::busy);
  ASSERT_EQ(pair.b.receive(pair.b.segment(0, 200000), 1), Status::ok);
  EXPECT_EQ(pair.b.region->deregister(), Status::busy);
  pair.settle();
  ASSERT_EQ(pair.b.seen.size(), 1U) << "busy must change nothing";
  EXPECT_EQ(pair.a.region->deregister(), Status::ok);
  EXPECT_EQ(pair.b.region->deregister(), Status::ok);
  EXPECT_EQ(pair.a.send(pair.a.segment(0, 1), 1), Status::invalid_argument);
}

TEST(Ending, MEM_5_a_read_under_way_runs_out_before_deregister_says_ok) {
  Side::Options narrow;
  narrow.weather.capacity = 1000;
  Pair pair(narrow, narrow);
  pair.go_up();
  ASSERT_EQ(pair.a.one_sided(Operation::read, pair.a.segment(0, 300000), pair.at_b(0), 1), Status::ok);
  for (int i = 0; i < 20; ++i) static_cast<void>(pair.b.endpoint->deliver());
  EXPECT_EQ(pair.b.region->deregister(), Status::again);
  std::vector<std::uint32_t> users;
  pair.b.region->collect_users(users);
  EXPECT_EQ(users, std::vector<std::uint32_t>{2});
  pair.settle();
  EXPECT_EQ(pair.b.region->deregister(), Status::ok);
}

TEST(Ending, ERR_4_drain_delivers_everything_and_counts_it) {
  Side::Options torn;
  torn.weather.most_taken = 100;
  Pair pair(torn, torn);
  pair.go_up();
  for (std::uint64_t i = 0; i < 5; ++i) {
    ASSERT_EQ(pair.a.send(pair.a.segment(0, 5000), i, Flags::unsignalled), Status::ok);
  }
  pair.a.endpoint->drain();
  EXPECT_EQ(pair.a.send(pair.a.segment(0, 1), 9), Status::not_connected);
  pair.settle();
  ASSERT_EQ(pair.a.events.drains, 1) << "five messages of 5,000 bytes fit the window";
  EXPECT_EQ(pair.a.events.drained_messages, 5U);
  provider::EndOrder order;
  order.cause = Status::disconnected;
  order.after_messages = true;
  order.messages = 5;
  pair.b.endpoint->end(order);
  EXPECT_EQ(pair.b.events.finishes, 0);
  for (std::uint64_t i = 0; i < 6; ++i) {
    ASSERT_EQ(pair.b.receive(pair.b.segment(0, 5000), i), i < 5 ? Status::ok : Status::not_connected);
  }
  EXPECT_EQ(pair.b.events.finishes, 1);
  Pair::take(pair.b);
  ASSERT_EQ(pair.b.seen.size(), 6U);
  EXPECT_EQ(pair.b.seen[5].operation, Operation::endpoint_ended);
  EXPECT_EQ(pair.b.seen[5].status, Status::disconnected);
}

TEST(Ending, ERR_4_the_loss_of_the_path_after_a_graceful_end_loses_no_message) {
  Pair pair;
  pair.go_up();
  ASSERT_EQ(pair.a.send(pair.a.segment(0, 100), 1), Status::ok);
  pair.settle();
  provider::EndOrder order;
  order.cause = Status::disconnected;
  order.after_messages = true;
  order.messages = 1;
  pair.b.endpoint->end(order);
  ASSERT_EQ(pair.b.receive(pair.b.segment(0, 100), 7), Status::ok);
  Pair::take(pair.b);
  ASSERT_EQ(pair.b.seen.size(), 2U);
  EXPECT_EQ(pair.b.seen[0].status, Status::ok);
  EXPECT_EQ(pair.b.seen[0].bytes, 100U);
}

TEST(Ending, ERR_7_the_end_comes_after_all_else_and_CMP_6_needs_no_room) {
  Side::Options small;
  small.capacity = 4;
  Pair pair(small, {});
  pair.go_up();
  ASSERT_EQ(pair.a.receive(pair.a.segment(0, 10), 1), Status::ok);
  ASSERT_EQ(pair.a.receive(pair.a.segment(0, 10), 2), Status::ok);
  ASSERT_EQ(pair.a.send(pair.a.segment(0, 200000), 3), Status::ok);
  ASSERT_EQ(pair.a.send(pair.a.segment(0, 200000), 4), Status::ok);
  EXPECT_EQ(pair.a.send(pair.a.segment(0, 10), 5), Status::again) << "the queue has room for four";
  EXPECT_EQ(pair.a.receive(pair.a.segment(0, 10), 5), Status::again);
  for (std::uint64_t i = 0; i < 30; ++i) {
    ASSERT_EQ(pair.a.send(pair.a.segment(0, 10), 100 + i, Flags::unsignalled), Status::ok);
  }
  provider::EndOrder order;
  order.cause = Status::peer_lost;
  order.native_code = 104;
  pair.a.endpoint->end(order);
  // One entry at a time: nothing is lost or doubled at the edges.
  std::vector<Completion> seen;
  Completion entry;
  while (pair.a.queue.poll(&entry, 1) == 1) seen.push_back(entry);
  ASSERT_EQ(seen.size(), 35U);
  EXPECT_EQ(of(seen, Operation::send).size(), 32U);
  EXPECT_EQ(of(seen, Operation::receive).size(), 2U);
  EXPECT_EQ(seen.back().operation, Operation::endpoint_ended);
  EXPECT_EQ(seen.back().status, Status::peer_lost);
  EXPECT_EQ(seen.back().native_code, 104);
  const auto sends = of(seen, Operation::send);
  EXPECT_EQ(sends[0].context, 3U);
  EXPECT_EQ(sends[1].context, 4U);
  for (std::uint64_t i = 0; i < 30; ++i) EXPECT_EQ(sends[2 + i].context, 100 + i);
  EXPECT_TRUE(pair.a.queue.arm());
}

TEST(Ending, ERR_5_a_silenced_endpoint_says_nothing_more_and_gives_its_room_back) {
  Side::Options small;
  small.capacity = 4;
  Pair pair(small, {});
  pair.go_up();
  ASSERT_EQ(pair.a.send(pair.a.segment(0, 10), 1), Status::ok);
  ASSERT_EQ(pair.a.receive(pair.a.segment(0, 10), 2), Status::ok);
  ASSERT_EQ(pair.a.send(pair.a.segment(0, 200000), 3), Status::ok);
  pair.a.endpoint->silence();
  provider::EndOrder order;
  order.cause = Status::local_close;
  pair.a.endpoint->end(order);
  Completion entry;
  EXPECT_EQ(pair.a.queue.poll(&entry, 1), 0U);
  const Entry gate(pair.a.queue.gate());
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(pair.a.queue.reserve());
  EXPECT_FALSE(pair.a.queue.reserve());
  pair.a.queue.release(4);
}

TEST(Ending, ERR_5_receives_in_a_shared_queue_are_cancelled_with_their_region) {
  Side::Options shared;
  shared.shared = true;
  Pair pair({}, shared);
  pair.go_up();
  const auto other = pair.b.context.register_memory(
      {.address = pair.b.memory.data(), .length = 4096, .access = weft::Access::local_write});
  ASSERT_EQ(pair.b.receive(pair.b.segment(0, 10), 1), Status::ok);
  ASSERT_EQ(pair.b.receive({other->token(), 0, 10}, 2), Status::ok);
  ASSERT_EQ(pair.b.receive(pair.b.segment(0, 10), 3), Status::ok);
  EXPECT_EQ(other->deregister(), Status::busy);
  other->cancel_shared_receives();
  EXPECT_EQ(other->deregister(), Status::ok);
  ASSERT_EQ(pair.a.send(pair.a.segment(0, 10), 1), Status::ok);
  ASSERT_EQ(pair.a.send(pair.a.segment(0, 10), 1), Status::ok);
  pair.settle();
  ASSERT_EQ(pair.b.seen.size(), 3U);
  EXPECT_EQ(pair.b.seen[0].context, 2U);
  EXPECT_EQ(pair.b.seen[0].status, Status::cancelled);
  EXPECT_EQ(pair.b.seen[1].context, 1U);
  EXPECT_EQ(pair.b.seen[1].status, Status::ok);
  EXPECT_EQ(pair.b.seen[2].context, 3U);
}

TEST(Ending, PRG_5_what_is_held_back_is_noted_and_leaves) {
  Pair pair;
  pair.go_up();
  ASSERT_EQ(pair.a.one_sided(Operation::write, pair.a.segment(0, 100), pair.at_b(0), 1, Flags::unsignalled),
            Status::ok);
  while (pair.b.endpoint->deliver()) {
  }
  EXPECT_EQ(pair.a.region->deregister(), Status::busy);
  EXPECT_TRUE(pair.b.queue.holds_back());
  {
    const Entry entry(pair.b.queue.gate());
    pair.b.queue.release_held_back();
  }
  EXPECT_FALSE(pair.b.queue.holds_back());
  while (pair.a.endpoint->deliver()) {
  }
  EXPECT_EQ(pair.a.region->deregister(), Status::ok);
}

// A program with entries to take usually posts again soon, so the news waits for that; but not for ever.
TEST(Ending, PRG_5_a_peer_without_grants_hears_of_a_receive_although_entries_wait) {
  Pair pair;
  pair.go_up();
  ASSERT_EQ(pair.b.send(pair.b.segment(0, 8), 1), Status::ok);
  ASSERT_TRUE(pair.b.queue.has_entries());
  ASSERT_FALSE(pair.b.queue.holds_back());
  ASSERT_EQ(pair.b.receive(pair.b.segment(0, 10), 5), Status::ok);
  EXPECT_TRUE(pair.b.queue.holds_back());
}

TEST(Ending, CON_5_receives_before_up_and_no_sends) {
  Pair pair;
  ASSERT_EQ(pair.b.receive(pair.b.segment(0, 10), 5), Status::ok);
  EXPECT_EQ(pair.a.send(pair.a.segment(0, 10), 1), Status::again);
  pair.a.endpoint->go_up();
  pair.b.endpoint->go_up();
  ASSERT_EQ(pair.a.send(pair.a.segment(0, 10), 1), Status::ok);
  pair.settle();
  ASSERT_EQ(pair.b.seen.size(), 2U);
  EXPECT_EQ(pair.b.seen[0].operation, Operation::connect);
  EXPECT_EQ(pair.b.seen[1].context, 5U);
}

TEST(Ending, CON_2_the_connect_report_can_be_taken_back) {
  Pair pair;
  pair.a.endpoint->go_up();
  EXPECT_TRUE(pair.a.endpoint->withdraw_connect_report());
  EXPECT_FALSE(pair.a.endpoint->withdraw_connect_report());
  Pair::take(pair.a);
  EXPECT_TRUE(pair.a.seen.empty());
  pair.b.endpoint->go_up();
  Pair::take(pair.b);
  EXPECT_EQ(pair.b.seen.size(), 1U);
  EXPECT_FALSE(pair.b.endpoint->withdraw_connect_report());
}

}  // namespace
}  // namespace weft::engine::test
