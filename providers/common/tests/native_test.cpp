// Writes past the stream: order, completions, and how they end.
#include <gtest/gtest.h>

#include "native_pair.hpp"

namespace weft::engine::test {
namespace {

using Values = std::vector<std::uint64_t>;

// Writes of all sizes, each followed by a message that must find it.
TEST(Natives, ORD_2_a_message_finds_all_writes_before_it_over_any_weather) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    MessageSide::Options options = natively();
    options.weather.seed = seed;
    options.weather.mixes_natives = true;
    options.weather.refuses = seed % 2 == 0 ? 0.4 : 0;
    options.weather.later = seed > 4 ? 0.3 : 0;
    options.weather.reach = seed > 4 ? 4 : 1;
    options.weather.most_delivered = seed > 2 ? 3 : 1000;
    options.weather.takes_small = seed % 3 == 0;
    MessagePair pair(options);
    pair.go_up();
    std::mt19937_64 random(seed);
    const auto up_to = [&](std::uint64_t most) {
      return std::uniform_int_distribution<std::uint64_t>(0, most)(random);
    };
    constexpr std::uint64_t here = 500'000;
    for (std::uint64_t round = 0; round < 60; ++round) {
      struct Written {
        std::uint64_t at, length;
      };
      std::vector<Written> written;
      ASSERT_EQ(pair.b.receive(900'000, 100, round), Status::ok);
      pair.a.fill(0, 200'000, round);
      const std::uint64_t count = 1 + up_to(5);
      for (std::uint64_t i = 0; i < count; ++i) {
        const Written one{i * 60'000, 1 + up_to(i % 2 == 0 ? large : 2000)};
        const Flags flags = up_to(2) == 0 ? Flags::unsignalled : up_to(3) == 0 ? Flags::fence : Flags::none;
        ASSERT_EQ(post(pair.a, Operation::write, 0, one.length, i, here + one.at, flags), Status::ok);
        written.push_back(one);
      }
      ASSERT_EQ(pair.a.post(Operation::send, 0, up_to(1) * 60, 100 + round), Status::ok);
      pair.b.seen.clear();
      pair.a.seen.clear();
      for (int i = 0; i < 100'000 && pair.b.seen.empty(); ++i) {
        pair.a.poll();
        pair.b.poll();
      }
      ASSERT_EQ(pair.b.seen.size(), 1U) << "seed " << seed << " round " << round;
      for (const Written& one : written)
        ASSERT_TRUE(pair.b.holds(here + one.at, one.length, round)) << "seed " << seed << " round " << round;
      pair.settle();
      ASSERT_FALSE(pair.a.seen.empty());
      EXPECT_EQ(pair.a.seen.back().context, 100 + round);
    }
    EXPECT_GT(pair.a.ends[0].endpoint->natives_taken, 60);
    EXPECT_EQ(pair.a.ends[0].events.failures, 0) << pair.a.ends[0].events.what;
  }
}

TEST(Natives, ORD_3_completions_come_in_order_and_not_before_the_target_has_the_bytes) {
  MessagePair pair(natively());
  go_up_held(pair);
  pair.a.fill(0, large, 3);
  ASSERT_EQ(pair.a.post(Operation::write, 0, 8, 1, 0), Status::ok);
  ASSERT_EQ(pair.a.post(Operation::write, 0, large, 2, 100), Status::ok);
  ASSERT_EQ(pair.a.post(Operation::write, 0, 8, 3, 0), Status::ok);
  ASSERT_EQ(pair.a.post(Operation::read, 0, 8, 4, 0), Status::ok);
  pair.settle();
  EXPECT_EQ(contexts(pair.a.seen), (Values{1}));
  let_end(pair);
  EXPECT_EQ(contexts(pair.a.seen), (Values{1, 2, 3, 4}));
  EXPECT_EQ(pair.a.seen[1].bytes, large);
  EXPECT_TRUE(pair.b.holds(200, large - 100, 3 + 100 * 7));
}

TEST(Natives, OPS_11_a_flush_and_a_message_wait_for_writes_under_way) {
  MessagePair pair(natively());
  go_up_held(pair);
  ASSERT_EQ(pair.b.receive(900'000, 100, 7), Status::ok);
  pair.settle();
  ASSERT_EQ(post(pair.a, Operation::write, 0, large, 1, 0, Flags::unsignalled), Status::ok);
  ASSERT_EQ(post(pair.a, Operation::flush, 0, 0, 2, 0, Flags::none), Status::ok);
  ASSERT_EQ(pair.a.post(Operation::send, 0, 10, 3), Status::ok);
  pair.settle();
  EXPECT_TRUE(pair.a.seen.empty());
  EXPECT_TRUE(pair.b.seen.empty());
  let_end(pair);
  EXPECT_EQ(contexts(pair.a.seen), (Values{2, 3}));
  EXPECT_EQ(contexts(pair.b.seen), (Values{7}));
}

// What goes in the stream is not done when it left: a fenced write does not overtake it.
TEST(Natives, ORD_4_a_fenced_write_does_not_overtake_what_the_stream_carries) {
  MessagePair pair(natively());
  pair.go_up();
  pair.a.fill(0, large, 1);
  ASSERT_EQ(post(pair.a, Operation::write, 0, 1000, 1, 0, Flags::unsignalled), Status::ok);
  pair.a.fill(100'000, large, 9);
  ASSERT_EQ(post(pair.a, Operation::write, 100'000, large, 2, 0, Flags::fence), Status::ok);
  EXPECT_EQ(pair.a.ends[0].endpoint->natives_taken, 0);
  pair.settle();
  EXPECT_EQ(contexts(pair.a.seen), (Values{2}));
  EXPECT_TRUE(pair.b.holds(0, large, 9));
  // With nothing before it, it goes natively; behind one that is under way it waits.
  pair.a.queue.ends_natives = false;
  ASSERT_EQ(post(pair.a, Operation::write, 0, large, 3, 0, Flags::fence), Status::ok);
  const int taken = pair.a.ends[0].endpoint->natives_taken;
  EXPECT_GT(taken, 0);
  ASSERT_EQ(post(pair.a, Operation::write, 0, large, 4, 0, Flags::fence), Status::ok);
  EXPECT_EQ(pair.a.ends[0].endpoint->natives_taken, taken);
  let_end(pair);
  EXPECT_EQ(contexts(pair.a.seen), (Values{2, 3, 4}));
}

TEST(Natives, CMP_2_unsignalled_writes_without_end_and_a_signalled_one_behind) {
  MessageSide::Options options = natively();
  options.send_depth = 4;
  MessagePair pair(options);
  pair.go_up();
  for (int i = 0; i < 200; ++i) {
    const bool small = i % 3 == 0;
    while (post(pair.a, Operation::write, 0, small ? 10 : large, 1, 0, Flags::unsignalled) == Status::again) {
      pair.a.poll();
      pair.b.poll();
    }
  }
  while (pair.a.post(Operation::write, 0, large, 2, 0) == Status::again) {
    pair.a.poll();
    pair.b.poll();
  }
  pair.settle();
  EXPECT_EQ(contexts(pair.a.seen), (Values{2}));
  EXPECT_GT(pair.a.ends[0].endpoint->natives_taken, 100);
}

TEST(Natives, MEM_1_only_a_region_with_every_remote_right_is_lent) {
  MessagePair pair(natively());
  pair.go_up();
  EXPECT_EQ(pair.b.context.reachable, 1);
  std::vector<std::byte> other(large);
  const auto region = pair.b.context.register_memory(
      {.address = other.data(),
       .length = other.size(),
       .access = weft::Access::local_write | weft::Access::remote_write | weft::Access::remote_read});
  EXPECT_EQ(pair.b.context.reachable, 1);
  pair.a.ends[0].peer_memory = pair.a.ends[0].endpoint->import_key(region->key());
  pair.settle();
  EXPECT_EQ(pair.a.ends[0].endpoint->borrowed.size(), 1U);
  pair.a.fill(0, large, 4);
  ASSERT_EQ(pair.a.post(Operation::write, 0, large, 1, 0), Status::ok);
  pair.settle();
  EXPECT_EQ(contexts(pair.a.seen), (Values{1}));
  EXPECT_EQ(pair.a.ends[0].endpoint->natives_taken, 0);
  EXPECT_EQ(other[100], pair.a.memory[100]);
}

TEST(Natives, MEM_4_a_key_with_a_wrong_secret_is_lent_nothing) {
  MessagePair pair(natively());
  pair.go_up();
  std::array<std::byte, Key::size> forged{};
  Key key = *Key::decode(pair.b.region->key());
  ++key.secret.low;
  key.encode(forged);
  pair.a.ends[0].peer_memory = pair.a.ends[0].endpoint->import_key(forged);
  pair.settle();
  EXPECT_EQ(pair.a.ends[0].endpoint->borrowed.size(), 1U);
  pair.a.fill(0, large, 4);
  ASSERT_EQ(pair.a.post(Operation::write, 0, large, 1, 0), Status::ok);
  pair.settle();
  EXPECT_EQ(pair.b.ends[0].events.failure, Status::remote_access_error);
  EXPECT_EQ(pair.b.memory[100], std::byte{0});
}

TEST(Natives, MEM_5_memory_is_kept_until_it_was_returned_and_then_writes_are_refused) {
  MessagePair pair(natively());
  go_up_held(pair);
  std::vector<std::byte> other(large);
  const auto region =
      pair.b.context.register_memory({.address = other.data(),
                                      .length = other.size(),
                                      .access = weft::Access::local_write | weft::Access::remote_read |
                                                weft::Access::remote_write | weft::Access::remote_atomic});
  EXPECT_EQ(pair.b.context.reachable, 2);
  pair.a.ends[0].peer_memory = pair.a.ends[0].endpoint->import_key(region->key());
  pair.settle();
  pair.a.fill(0, large, 6);
  ASSERT_EQ(pair.a.post(Operation::write, 0, large, 1, 0), Status::ok);
  EXPECT_EQ(region->deregister(), Status::again);
  pair.settle();
  EXPECT_EQ(region->deregister(), Status::again) << "its bytes are under way";
  EXPECT_EQ(pair.b.context.reachable, 2);
  let_end(pair);
  EXPECT_EQ(contexts(pair.a.seen), (Values{1}));
  EXPECT_EQ(other[100], pair.a.memory[100]);
  EXPECT_EQ(region->deregister(), Status::ok);
  EXPECT_EQ(pair.b.context.reachable, 1);
  EXPECT_EQ(pair.a.ends[0].endpoint->borrowed.size(), 1U);
  other.assign(large, std::byte{0});
  ASSERT_EQ(pair.a.post(Operation::write, 0, 8, 2, 0), Status::ok);
  ASSERT_EQ(pair.a.post(Operation::write, 0, large, 3, 0), Status::ok);
  pair.settle();
  EXPECT_EQ(pair.b.ends[0].events.failure, Status::remote_access_error);
  EXPECT_EQ(other[0], std::byte{0});
  EXPECT_EQ(other[100], std::byte{0});
}

TEST(Natives, MEM_5_ERR_3_who_does_not_give_back_is_cut_off_and_lives) {
  MessagePair pair(natively());
  go_up_held(pair);
  std::vector<std::uint32_t> users;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(pair.b.region->deregister(), Status::again);
    pair.b.region->collect_users(users);
    EXPECT_TRUE(users.empty());
    EXPECT_EQ(pair.b.ends[0].endpoint->natives_cut, 0) << "it was only just asked";
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(320));
  EXPECT_EQ(pair.b.region->deregister(), Status::ok);
  EXPECT_EQ(pair.b.ends[0].endpoint->natives_cut, 1);
  EXPECT_EQ(pair.b.context.reachable, 0);
  // The peer's word comes late. What is registered from now on is not lent.
  std::vector<std::byte> other(large);
  const auto region =
      pair.b.context.register_memory({.address = other.data(),
                                      .length = other.size(),
                                      .access = weft::Access::local_write | weft::Access::remote_read |
                                                weft::Access::remote_write | weft::Access::remote_atomic});
  pair.a.ends[0].peer_memory = pair.a.ends[0].endpoint->import_key(region->key());
  pair.settle();
  ASSERT_EQ(pair.a.post(Operation::write, 0, large, 1, 0), Status::ok);
  pair.settle();
  EXPECT_EQ(contexts(pair.a.seen), (Values{1}));
  EXPECT_EQ(pair.a.ends[0].endpoint->natives_taken, 0);
  EXPECT_EQ(pair.b.ends[0].events.failures, 0) << pair.b.ends[0].events.what;
  EXPECT_EQ(region->deregister(), Status::ok);
}

TEST(Natives, CON_5_while_the_transport_is_not_ready_writes_go_through_the_stream) {
  MessagePair pair(natively());
  pair.a.ends[0].endpoint->natives_unready = true;
  pair.go_up();
  pair.a.fill(0, large, 2);
  ASSERT_EQ(pair.a.post(Operation::write, 0, large, 1, 0), Status::ok);
  pair.settle();
  EXPECT_EQ(contexts(pair.a.seen), (Values{1}));
  EXPECT_EQ(pair.a.ends[0].endpoint->natives_taken, 0);
  EXPECT_TRUE(pair.b.holds(8, large - 8, 2 + 8 * 7));
}

TEST(Natives, MEM_5_local_memory_is_in_use_until_the_write_is_complete) {
  MessagePair pair(natively());
  go_up_held(pair);
  ASSERT_EQ(post(pair.a, Operation::write, 0, large, 1, 0, Flags::unsignalled), Status::ok);
  EXPECT_EQ(pair.a.region->deregister(), Status::busy);
  EXPECT_EQ(pair.b.ends[0].endpoint->borrowed.size(), 1U) << "busy changes nothing";
  let_end(pair);
  EXPECT_EQ(pair.a.region->deregister(), Status::again);
  pair.settle();
  EXPECT_EQ(pair.a.region->deregister(), Status::ok);
}

TEST(Natives, ERR_2_at_an_end_nothing_goes_on_and_what_was_under_way_is_cancelled) {
  MessagePair pair(natively());
  go_up_held(pair);
  pair.a.ends[0].endpoint->refuses_natives = false;
  ASSERT_EQ(pair.a.post(Operation::write, 0, large, 1, 0), Status::ok);
  ASSERT_EQ(pair.a.post(Operation::send, 0, 8, 2), Status::ok);
  provider::EndOrder order;
  order.cause = Status::remote_access_error;
  order.detail = 0;
  pair.a.ends[0].endpoint->end(order);
  EXPECT_EQ(pair.a.queue.natives_under_way(), 0U);
  pair.a.queue.ends_natives = true;
  pair.settle();
  ASSERT_EQ(pair.a.seen.size(), 3U);
  EXPECT_EQ(pair.a.seen[0].status, Status::cancelled);
  EXPECT_EQ(pair.a.seen[1].status, Status::cancelled);
  EXPECT_EQ(pair.b.memory[100], std::byte{0});
  EXPECT_EQ(pair.a.post(Operation::write, 0, large, 3, 0), Status::not_connected);
}

TEST(Natives, ERR_2_a_fabric_that_breaks_loses_the_path) {
  MessagePair pair(natively());
  pair.go_up();
  pair.a.ends[0].endpoint->natives_break = true;
  ASSERT_EQ(pair.a.post(Operation::write, 0, large, 1, 0), Status::ok);
  EXPECT_EQ(pair.a.ends[0].events.failure, Status::peer_lost);
  EXPECT_EQ(pair.a.ends[0].endpoint->natives_stopped, 1);
}

TEST(Natives, ERR_4_a_close_waits_for_writes_under_way) {
  MessagePair pair(natively());
  go_up_held(pair);
  ASSERT_EQ(post(pair.a, Operation::write, 0, large, 1, 0, Flags::unsignalled), Status::ok);
  pair.a.ends[0].endpoint->drain();
  pair.settle();
  EXPECT_EQ(pair.a.ends[0].events.drains, 0);
  let_end(pair);
  EXPECT_EQ(pair.a.ends[0].events.drains, 1);
  EXPECT_EQ(pair.b.memory[100], pair.a.memory[100]);
}

TEST(Natives, OPS_1_a_fabric_without_room_is_tried_again) {
  MessagePair pair(natively());
  pair.go_up();
  pair.a.ends[0].endpoint->refuses_natives = true;
  pair.a.fill(0, large, 2);
  ASSERT_EQ(pair.a.post(Operation::write, 0, large, 1, 0), Status::ok);
  pair.settle();
  EXPECT_TRUE(pair.a.seen.empty());
  // What the peer asks for does not wait.
  ASSERT_EQ(pair.b.post(Operation::read, 0, 8, 5, 0), Status::ok);
  pair.settle();
  EXPECT_EQ(contexts(pair.b.seen), (Values{5}));
  pair.a.ends[0].endpoint->refuses_natives = false;
  pair.settle();
  EXPECT_EQ(contexts(pair.a.seen), (Values{1}));
  EXPECT_TRUE(pair.b.holds(8, large - 8, 2 + 8 * 7));
}

}  // namespace
}  // namespace weft::engine::test
