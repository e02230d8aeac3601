// The message family: the engine's stream over a fabric that only brings messages, and not always kindly.
#include <gtest/gtest.h>

#include "message_pair.hpp"

namespace weft::engine::test {
namespace {

// Messages, writes and reads of many sizes arrive whole and in order.
void exchange(MessagePair& pair, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    const auto value = static_cast<std::uint64_t>(round);
    const std::uint64_t length = (value * 7919) % 200'000;
    pair.b.memory.assign(pair.b.memory.size(), std::byte{0});
    pair.a.seen.clear();
    pair.b.seen.clear();
    pair.a.fill(0, length, value);
    pair.a.fill(500'000, 64, value + 1);
    ASSERT_EQ(pair.b.receive(0, 200'000, 1), Status::ok);
    ASSERT_EQ(pair.b.receive(300'000, 64, 2), Status::ok);
    ASSERT_EQ(pair.a.post(Operation::send, 0, length, 10), Status::ok);
    ASSERT_EQ(pair.a.post(Operation::write, 0, length, 11, 600'000), Status::ok);
    ASSERT_EQ(pair.a.post(Operation::send, 500'000, 64, 12), Status::ok);
    ASSERT_EQ(pair.a.post(Operation::read, 800'000, length, 13, 600'000), Status::ok);
    pair.settle();
    ASSERT_EQ(pair.b.seen.size(), 2U) << "round " << round << ": " << pair.b.ends[0].events.what;
    EXPECT_EQ(pair.b.seen[0].context, 1U);
    EXPECT_EQ(pair.b.seen[0].bytes, length);
    EXPECT_EQ(pair.b.seen[1].context, 2U);
    ASSERT_TRUE(pair.b.holds(0, length, value));
    ASSERT_TRUE(pair.b.holds(300'000, 64, value + 1));
    ASSERT_TRUE(pair.b.holds(600'000, length, value));
    ASSERT_TRUE(pair.a.holds(800'000, length, value));
    ASSERT_EQ(pair.a.seen.size(), 4U);
    for (std::uint64_t i = 0; i < 4; ++i) {
      EXPECT_EQ(pair.a.seen[i].context, 10 + i);
      EXPECT_EQ(pair.a.seen[i].status, Status::ok);
    }
  }
}

TEST(Messages, a_kind_fabric) {
  MessagePair pair;
  pair.go_up();
  exchange(pair, 20);
  EXPECT_EQ(pair.a.counter("messages_out_of_order"), 0U);
}

TEST(Messages, ORD_1_a_fabric_that_reorders_repeats_refuses_and_holds_back) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    MessageSide::Options options;
    options.weather = {.most_delivered = 3,
                       .reach = 8,
                       .repeats = 0.1,
                       .refuses = 0.3,
                       .later = 0.5,
                       .doorbell = false,
                       .mute_paths = false,
                       .seed = seed};
    options.messages.buffers.size = 2000;
    MessagePair pair(options);
    pair.go_up();
    exchange(pair, 10);
    EXPECT_GT(pair.b.counter("messages_out_of_order"), 20U);
    EXPECT_GT(pair.b.counter("messages_duplicate"), 5U);
    EXPECT_GT(pair.a.counter("refused_transmissions"), 20U);
  }
}

TEST(Messages, ORD_1_payload_goes_from_where_it_lies) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    MessageSide::Options options;
    options.weather.takes_small = true;
    options.weather.refuses = seed == 1 ? 0 : 0.2;
    options.weather.later = 0.5;
    options.weather.reach = 4;
    options.weather.seed = seed;
    options.messages.buffers.size = 2000;
    options.messages.small_message = 1500;
    options.messages.pieces_from = 3000;
    MessagePair pair(options);
    pair.go_up();
    exchange(pair, 10);
    EXPECT_GT(pair.a.ends[0].endpoint->taken_small, 200) << seed;
    EXPECT_EQ(pair.b.counter("messages_duplicate"), 0U);
  }
}

TEST(Messages, SEC_1_what_is_missing_too_long_breaks_the_endpoint) {
  MessageSide::Options options;
  options.messages.buffers.size = 1000;
  MessagePair pair(options);
  pair.go_up();
  // More than half of the receives, so that the peer hears of them at once.
  for (std::uint64_t i = 0; i < 40; ++i) ASSERT_EQ(pair.b.receive(0, 200'000, i), Status::ok);
  pair.settle();
  ASSERT_EQ(pair.a.post(Operation::send, 0, 200'000, 10), Status::ok);
  ASSERT_FALSE(pair.b.queue.inbox.empty());
  pair.b.queue.inbox.pop_front();
  pair.settle();
  EXPECT_EQ(pair.b.ends[0].events.failure, Status::protocol);
  EXPECT_NE(pair.b.ends[0].events.what.find("order"), std::string::npos);
}

TEST(Messages, SEC_1_strangers_and_the_torn_are_dropped_and_counted) {
  MessagePair pair;
  pair.go_up();
  std::vector<std::byte> bytes(64);
  pair.b.queue.put(std::span(bytes).first(3));
  pair.b.queue.put(bytes);
  wire::store(bytes.data(), message::Header{12345, 0, 0});
  pair.b.queue.put(bytes);
  wire::store(bytes.data(), message::Header{12345, message::slot_mask, 0});
  pair.b.queue.put(bytes);
  pair.settle();
  EXPECT_EQ(pair.b.counter("messages_dropped"), 4U);
  EXPECT_EQ(pair.b.ends[0].events.failures, 0);
  exchange(pair, 3);
}

TEST(Messages, SEC_1_unknown_kinds_and_lying_notices_end_the_endpoint) {
  for (const bool lying : {false, true}) {
    MessagePair pair;
    pair.go_up();
    // The peer's own next message, altered.
    ASSERT_EQ(pair.b.receive(0, 64, 1), Status::ok);
    pair.settle();
    ASSERT_EQ(pair.a.post(Operation::send, 0, 64, 10), Status::ok);
    ASSERT_EQ(pair.b.queue.inbox.size(), 1U);
    std::vector<std::byte>& bytes = pair.b.queue.inbox.front();
    auto header = wire::load<message::Header>(bytes.data());
    header.slot_and_kind |= (lying ? 1U : 77U) << message::slot_bits;
    wire::store(bytes.data(), header);
    if (lying) {
      bytes.resize(sizeof header + sizeof(message::SleepNotice));
      wire::store(bytes.data() + sizeof header, message::SleepNotice{1'000'000});
    }
    pair.settle();
    EXPECT_EQ(pair.b.ends[0].events.failure, Status::protocol);
  }
}

TEST(Messages, CON_5_what_comes_before_this_side_is_up_is_kept) {
  MessagePair pair;
  ASSERT_EQ(pair.b.receive(0, 64, 1), Status::ok);
  pair.a.ends[0].endpoint->go_up();
  pair.a.fill(0, 64, 9);
  ASSERT_EQ(pair.a.post(Operation::send, 0, 64, 10), Status::ok);
  pair.settle();
  EXPECT_TRUE(pair.b.seen.empty());
  pair.b.ends[0].endpoint->go_up();
  pair.settle();
  ASSERT_EQ(pair.b.seen.size(), 2U);
  EXPECT_EQ(pair.b.seen[0].operation, Operation::connect);
  EXPECT_EQ(pair.b.seen[1].operation, Operation::receive);
  EXPECT_TRUE(pair.b.holds(0, 64, 9));
}

TEST(Messages, CON_5_little_leaves_before_the_peer_is_up_and_the_rest_follows) {
  MessageSide::Options options;
  options.messages.buffers.size = 1000;
  MessagePair pair(options);
  ASSERT_EQ(pair.b.receive(0, 60'000, 1), Status::ok);
  pair.a.ends[0].endpoint->go_up();
  pair.a.fill(0, 60'000, 3);
  ASSERT_EQ(pair.a.post(Operation::send, 0, 60'000, 10), Status::ok);
  EXPECT_EQ(pair.b.queue.inbox.size(), options.messages.most_early);
  pair.settle();
  pair.b.ends[0].endpoint->go_up();
  pair.settle();
  EXPECT_EQ(pair.b.ends[0].events.failures, 0) << pair.b.ends[0].events.what;
  ASSERT_TRUE(pair.b.holds(0, 60'000, 3));
}

TEST(Messages, SEC_1_a_peer_that_sends_too_much_too_early_is_found_out) {
  MessagePair pair;
  pair.a.ends[0].endpoint->go_up();
  ASSERT_EQ(pair.b.queue.inbox.size(), 1U);
  const std::vector<std::byte> first = pair.b.queue.inbox.front();
  auto header = wire::load<message::Header>(first.data());
  for (header.sequence = 1; header.sequence < 200; ++header.sequence) {
    std::vector<std::byte> bytes(1000);
    wire::store(bytes.data(), header);
    pair.b.queue.put(bytes);
  }
  pair.settle();
  pair.b.ends[0].endpoint->go_up();
  EXPECT_EQ(pair.b.ends[0].events.failure, Status::protocol);
}

TEST(Messages, ERR_2_a_failed_buffer_ends_its_endpoint_and_no_other) {
  MessageSide::Options options;
  options.endpoints = 2;
  options.weather.later = 1;
  MessagePair pair(options);
  pair.go_up();
  pair.a.queue.gives_back = false;
  ASSERT_EQ(pair.a.post(Operation::send, 0, 64, 10), Status::ok);
  pair.a.queue.fail_all(-103);
  EXPECT_EQ(pair.a.ends[0].events.failure, Status::peer_lost);
  EXPECT_EQ(pair.a.ends[1].events.failures, 0);
  provider::EndOrder order;
  order.cause = Status::peer_lost;
  pair.a.ends[0].endpoint->end(order);
  pair.b.ends[0].endpoint->end(order);
  EXPECT_EQ(pair.a.ends[0].events.finishes, 1);
  // Its place can be taken; the other goes on.
  pair.a.queue.gives_back = true;
  pair.settle();
  pair.b.seen.clear();
  ASSERT_EQ(pair.b.receive(0, 64, 1, 1), Status::ok);
  pair.a.fill(0, 64, 4);
  ASSERT_EQ(pair.a.post(Operation::send, 0, 64, 11, 0, 1), Status::ok);
  pair.settle();
  ASSERT_EQ(pair.b.seen.size(), 1U);
  EXPECT_TRUE(pair.b.holds(0, 64, 4));
}

TEST(Messages, ERR_2_a_path_that_breaks_at_once) {
  MessagePair pair;
  pair.go_up();
  pair.a.ends[0].endpoint->path_is_broken = true;
  ASSERT_EQ(pair.a.post(Operation::send, 0, 64, 10), Status::ok);
  EXPECT_EQ(pair.a.ends[0].events.failure, Status::peer_lost);
}

TEST(Messages, an_ended_endpoint_leaves_its_buffers_and_late_messages_to_nobody) {
  MessageSide::Options options;
  options.weather.later = 1;
  MessagePair pair(options);
  pair.go_up();
  pair.a.queue.gives_back = false;
  ASSERT_EQ(pair.a.post(Operation::send, 0, 64, 10), Status::ok);
  pair.a.ends[0].endpoint->end({});
  EXPECT_EQ(pair.a.queue.buffers_under_way(), 1U);
  pair.b.ends[0].endpoint->end({});
  pair.a.queue.gives_back = true;
  pair.settle();
  EXPECT_EQ(pair.a.queue.buffers_under_way(), 0U);
  EXPECT_EQ(pair.b.counter("messages_dropped"), 1U);
}

TEST(Messages, PRG_1_one_that_holds_all_it_may_leaves_the_others_their_share) {
  MessageSide::Options options;
  options.endpoints = 3;
  options.weather.later = 1;
  options.messages.buffers = {.size = 1000, .kept = 2, .spare = 4, .most = 100};
  MessagePair pair(options);
  pair.go_up();
  pair.a.queue.gives_back = false;
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_EQ(pair.b.receive(i * 100'000, 60'000, i, i), Status::ok);
  pair.settle();
  pair.a.fill(0, 60'000, 1);
  ASSERT_EQ(pair.a.post(Operation::send, 0, 60'000, 10, 0, 0), Status::ok);
  EXPECT_GE(pair.a.counter("refused_transmissions"), 1U);
  const std::size_t at_b = pair.b.queue.inbox.size();
  ASSERT_EQ(pair.a.post(Operation::send, 0, 64, 11, 0, 1), Status::ok);
  ASSERT_EQ(pair.a.post(Operation::send, 0, 64, 12, 0, 2), Status::ok);
  EXPECT_EQ(pair.b.queue.inbox.size(), at_b + 2) << "the share of the others was taken";
  pair.a.queue.gives_back = true;
  pair.settle();
  EXPECT_TRUE(pair.b.holds(0, 60'000, 1));
}

TEST(Messages, PRG_1_buffers_that_never_come_back_are_made_good_for_the_next_endpoint) {
  MessageSide::Options options;
  options.weather.later = 1;
  options.messages.buffers = {.size = 1000, .kept = 2, .spare = 4, .most = 100};
  options.endpoints = 6;
  MessagePair pair(options);
  pair.go_up();
  pair.a.queue.gives_back = false;  // as towards peers that died
  for (std::uint64_t i = 0; i < 6; ++i) {
    static_cast<void>(pair.b.receive(0, 60'000, i, i));
    pair.b.poll();
    ASSERT_EQ(pair.a.post(Operation::send, 0, 6'000, 10, 0, i), Status::ok);
    pair.a.ends[i].endpoint->end({});
  }
  const std::uint64_t stuck = pair.a.queue.buffers_under_way();
  EXPECT_GE(stuck, 6U);
  // Endpoints made since then find their share.
  provider::EndpointRequest request;
  request.id = 500;
  request.send_queue = request.receive_queue = &pair.a.queue;
  request.send_depth = request.receive_depth = 8;
  request.max_inline = 64;
  FakeEvents events;
  request.events = &events;
  {
    FakeFabricEndpoint late(pair.a.context, pair.a.queue, request);
    EXPECT_GE(pair.a.queue.buffers_free(), 6U);
    late.end({});
  }
  pair.a.queue.gives_back = true;
  pair.settle();
  EXPECT_EQ(pair.a.queue.buffers_under_way(), 0U);
}

}  // namespace
}  // namespace weft::engine::test
