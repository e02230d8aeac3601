// What goes wrong late or at the edges: long runs, ends in the middle of something, reads that never stop,
// regions that overlap.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "pair.hpp"

namespace weft::engine::test {
namespace {

using weft::Access;

TEST(Endurance, ERR_2_an_ended_endpoint_holds_nothing_back) {
  Pair pair;
  pair.go_up();
  ASSERT_EQ(pair.b.send(pair.b.segment(0, 100000), 77), Status::ok);  // waits for a receive
  ASSERT_EQ(pair.a.one_sided(Operation::write, pair.a.segment(0, 8), pair.at_b(0), 1, Flags::unsignalled),
            Status::ok);
  pair.settle();
  ASSERT_TRUE(pair.b.queue.holds_back());
  pair.b.seen.clear();
  provider::EndOrder order;
  order.cause = Status::aborted;
  pair.b.endpoint->end(order);
  EXPECT_FALSE(pair.b.queue.holds_back());
  Pair::take(pair.b);
  ASSERT_EQ(pair.b.seen.size(), 2U);
  pair.b.seen.clear();
  pair.b.endpoint->hold_back_no_more();
  Pair::take(pair.b);
  EXPECT_TRUE(pair.b.seen.empty());
}

TEST(Endurance, ERR_5_a_silenced_endpoint_reports_no_late_completion) {
  Pair pair;
  pair.go_up();
  ASSERT_EQ(pair.a.one_sided(Operation::write, pair.a.segment(0, 8), pair.at_b(0), 1), Status::ok);
  pair.a.endpoint->silence();
  pair.a.endpoint->drain();
  pair.settle();
  EXPECT_EQ(pair.a.events.drains, 1);
  EXPECT_TRUE(pair.a.seen.empty());
}

TEST(Endurance, ERR_5_destroying_takes_reports_along) {
  FakeHost host;
  FakeQueueEvents queue_events;
  FakeEvents events;
  PlainContext context(host, {});
  PlainQueue queue(context, 16, queue_events);
  std::vector<std::byte> memory(64);
  const auto region =
      context.register_memory({.address = memory.data(), .length = 64, .access = Access::local_write});
  provider::EndpointRequest request;
  request.id = 3;
  request.send_queue = &queue;
  request.receive_queue = &queue;
  request.send_depth = 4;
  request.receive_depth = 4;
  request.events = &events;
  auto endpoint = std::make_unique<StreamEndpoint>(context, queue, request, Weather{});
  const Segment segment{region->token(), 0, 8};
  const ReceiveRequest receive{1, std::span(&segment, 1)};
  ASSERT_EQ(endpoint->post_receives(&receive, 1).status, Status::ok);
  provider::EndOrder order;
  order.cause = Status::local_close;
  endpoint->end(order);
  endpoint.reset();
  std::array<Completion, 4> entries;
  EXPECT_EQ(queue.poll(entries.data(), entries.size()), 0U);
}

TEST(Endurance, ERR_1_too_short_a_receive_after_the_peer_closed) {
  for (const bool path_gone : {false, true}) {
    Pair pair;
    pair.go_up();
    ASSERT_EQ(pair.a.send(pair.a.segment(0, 1000), 1), Status::ok);
    pair.settle();
    pair.b.seen.clear();
    provider::EndOrder order;
    order.cause = Status::disconnected;
    order.after_messages = true;
    order.messages = 1;
    if (path_gone) pair.b.endpoint->lose_path();
    pair.b.endpoint->end(order);
    ASSERT_EQ(pair.b.receive(pair.b.segment(0, 10), 5), Status::ok);
    if (!path_gone) {
      EXPECT_EQ(pair.b.events.failure, Status::truncated);
      order.after_messages = false;
      pair.b.endpoint->end(order);
    }
    EXPECT_EQ(pair.b.events.finishes, 1) << path_gone;
    Pair::take(pair.b);
    ASSERT_EQ(pair.b.seen.size(), 2U);
    EXPECT_EQ(pair.b.seen[0].status, Status::truncated);
    EXPECT_EQ(pair.b.seen[1].operation, Operation::endpoint_ended);
  }
}

TEST(Endurance, ERR_7_a_peer_that_claims_more_messages_than_came_is_not_waited_for) {
  Pair pair;
  pair.go_up();
  pair.b.endpoint->lose_path();
  provider::EndOrder order;
  order.cause = Status::disconnected;
  order.after_messages = true;
  order.messages = 3;
  pair.b.endpoint->end(order);
  EXPECT_EQ(pair.b.events.finishes, 1);
}

TEST(Endurance, RCQ_1_an_announcement_after_very_many_small_messages) {
  Side::Options shared;
  shared.shared = true;
  Pair pair({}, shared);
  pair.go_up();
  constexpr std::uint64_t more_than_grants_may_jump = 131'100;
  for (std::uint64_t i = 0; i < more_than_grants_may_jump; ++i) {
    ASSERT_EQ(pair.b.receive(pair.b.segment(0, 200000), i), Status::ok);
    ASSERT_EQ(pair.a.send(pair.a.segment(0, 8), i, Flags::unsignalled), Status::ok);
    while (pair.b.endpoint->deliver()) {
    }
    while (pair.a.endpoint->deliver()) {
    }
    Pair::take(pair.b);
  }
  ASSERT_EQ(pair.b.seen.size(), more_than_grants_may_jump);
  pair.b.seen.clear();
  ASSERT_EQ(pair.b.receive(pair.b.segment(0, 200000), 1), Status::ok);
  ASSERT_EQ(pair.a.send(pair.a.segment(0, 100000), 2), Status::ok);
  pair.settle();
  EXPECT_EQ(pair.a.events.failures, 0) << pair.a.events.what;
  EXPECT_EQ(pair.b.seen.size(), 1U);
}

TEST(Endurance, OPS_9_inline_lengths_that_would_wrap) {
  Pair pair;
  pair.go_up();
  ASSERT_EQ(pair.a.send(pair.a.segment(0, 100000), 1), Status::ok);  // nothing behind it can leave
  std::array<char, 64> bytes{};
  const std::array segments = {Segment::inline_bytes(bytes.data(), ~std::size_t{0} - 15),
                               Segment::inline_bytes(bytes.data(), 32)};
  WorkRequest request;
  request.segments = segments;
  request.flags = Flags::inline_data;
  EXPECT_EQ(pair.a.post(request), Status::too_big);
}

TEST(Endurance, CMP_4_a_send_behind_an_unsignalled_write_completes_by_itself) {
  Pair pair;
  pair.go_up();
  ASSERT_EQ(pair.b.receive(pair.b.segment(0, 64), 1), Status::ok);
  pair.settle();
  ASSERT_EQ(pair.a.one_sided(Operation::write, pair.a.segment(0, 8), pair.at_b(0), 1, Flags::unsignalled),
            Status::ok);
  ASSERT_EQ(pair.a.send(pair.a.segment(0, 8), 2), Status::ok);
  pair.settle();
  EXPECT_EQ(pair.a.seen.size(), 1U);
}

TEST(Endurance, OPS_3_reads_of_the_peer_do_not_keep_own_sends_back) {
  Side::Options narrow;
  narrow.weather.capacity = 1 << 16;
  narrow.memory = 2 << 20;
  Pair pair(narrow, narrow);
  pair.go_up();
  ASSERT_EQ(pair.b.receive(pair.b.segment(0, 64), 1), Status::ok);
  pair.settle();
  std::uint64_t under_way = 0;
  std::uint64_t reads_meanwhile = 0;
  bool sent = false;
  bool arrived = false;
  for (int round = 0; round < 4000 && !arrived; ++round) {
    for (; under_way < 4; ++under_way) {
      ASSERT_EQ(pair.b.one_sided(Operation::read, pair.b.segment(0, 1 << 20), pair.at_a(0), 9), Status::ok);
    }
    if (round == 100) {
      ASSERT_EQ(pair.a.send(pair.a.segment(0, 8), 1), Status::ok);
      sent = true;
    }
    static_cast<void>(pair.a.endpoint->deliver());
    pair.a.endpoint->resume();
    static_cast<void>(pair.b.endpoint->deliver());
    pair.b.endpoint->resume();
    Pair::take(pair.b);
    for (const Completion& entry : pair.b.seen) {
      if (entry.operation == Operation::receive) arrived = true;
      if (entry.operation != Operation::read) continue;
      --under_way;
      if (sent) ++reads_meanwhile;
    }
    pair.b.seen.clear();
  }
  EXPECT_TRUE(arrived) << "after " << reads_meanwhile << " further reads of 1 MiB";
  EXPECT_LT(reads_meanwhile, 10U);
}

TEST(Endurance, OPS_2_a_batch_is_one_transmission) {
  Side::Options wide;
  wide.weather.capacity = std::size_t{4} << 20;
  Pair pair(wide, wide);
  pair.go_up();
  constexpr std::size_t batch = 60;
  for (const std::uint64_t size : {64U, 1000U, 2000U, 4096U}) {
    for (std::uint64_t i = 0; i < batch; ++i)
      ASSERT_EQ(pair.b.receive(pair.b.segment(0, 4096), i), Status::ok);
    pair.settle();
    const Segment segment = pair.a.segment(0, size);
    std::vector<WorkRequest> requests(batch);
    for (WorkRequest& request : requests) request.segments = std::span(&segment, 1);
    const std::size_t before = pair.a.endpoint->transmissions;
    ASSERT_EQ(pair.a.endpoint->post(requests.data(), batch).accepted, batch);
    EXPECT_EQ(pair.a.endpoint->transmissions - before, 1U) << size;
    pair.settle();
  }
}

TEST(Endurance, MEM_1_a_region_that_overlaps_a_waiting_transfer_is_independent) {
  Side::Options narrow;
  narrow.weather.capacity = 1000;
  Pair pair(narrow, {});
  pair.go_up();
  ASSERT_EQ(pair.b.receive(pair.b.segment(0, 100000), 1), Status::ok);
  pair.settle();
  ASSERT_EQ(pair.a.send(pair.a.segment(0, 50000), 1), Status::ok);
  const auto second = pair.a.context.register_memory(
      {.address = pair.a.memory.data(), .length = 65536, .access = Access::none});
  EXPECT_EQ(second->deregister(), Status::ok);
  EXPECT_EQ(pair.a.region->deregister(), Status::busy);
  pair.settle();
  EXPECT_EQ(pair.a.region->deregister(), Status::ok);
}

// The helper gets its turn although the program polls without a pause (THR-2): bounded in steps, not in time.
TEST(Endurance, THR_2_the_helper_gets_in_beside_a_polling_program) {
  Gate gate(ThreadMode::single);
  std::atomic<bool> stop{false};
  std::uint64_t inside_count = 0;  // guarded by the gate
  std::thread program([&] {
    while (!stop.load()) {
      gate.enter();
      ++inside_count;
      gate.leave();
    }
  });
  std::uint64_t before = 0;
  for (int i = 0; i < 200; ++i) {
    gate.enter_helper();
    const std::uint64_t now = inside_count;
    for (int spin = 0; spin < 100; ++spin) EXPECT_EQ(inside_count, now);
    before = now;
    gate.leave_helper();
  }
  stop.store(true);
  program.join();
  EXPECT_GE(inside_count, before);
}

}  // namespace
}  // namespace weft::engine::test
