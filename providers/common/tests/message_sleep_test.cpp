// Who sleeps is woken: by the fabric's descriptors, which stand in the sets of sleepers only while somebody
// may sleep, or by the peer's ring, which may overtake the message that it is for.
#include <gtest/gtest.h>
#include <poll.h>

#include <utility>

#include "message_pair.hpp"

namespace weft::engine::test {
namespace {

[[nodiscard]] bool readable(int descriptor) {
  pollfd entry{descriptor, POLLIN, 0};
  return ::poll(&entry, 1, 0) == 1;
}

TEST(Messages, PRG_3_who_polls_for_long_is_woken_by_the_fabric_again_when_asleep) {
  MessagePair pair(MessageSide::Options{});
  pair.go_up();
  pair.settle();
  pair.b.queue.announce();
  EXPECT_TRUE(readable(pair.b.queue.descriptor()));
  for (int i = 0; i < 5000; ++i) pair.b.poll();
  EXPECT_FALSE(readable(pair.b.queue.descriptor())) << "what arrives still goes through the sleepers' set";
  ASSERT_TRUE(pair.b.queue.arm());
  EXPECT_TRUE(readable(pair.b.queue.descriptor())) << "a sleeper would not wake";
  // Asleep it stays, however often somebody else polls beside.
  for (int i = 0; i < 5000; ++i) pair.a.poll();
  EXPECT_TRUE(readable(pair.b.queue.descriptor()));
}

TEST(Messages, PRG_3_polls_beside_a_sleeper_leave_it_its_descriptor) {
  MessagePair pair(MessageSide::Options{});
  pair.go_up();
  pair.settle();
  ASSERT_TRUE(pair.b.queue.arm());
  // Each signals the one that sleeps, or leaves it asleep; it must wake for what the fabric tells.
  for (int i = 0; i < 5000; ++i) pair.b.poll();
  pair.b.queue.announce();
  EXPECT_TRUE(readable(pair.b.queue.descriptor()));
}

// Looked at often instead, and watched again as soon as it can be.
TEST(Messages, PRG_3_a_descriptor_that_the_system_refuses_to_watch_is_looked_at) {
  MessagePair pair(MessageSide::Options{});
  pair.go_up();
  ASSERT_EQ(pair.b.receive(0, 64, 1), Status::ok);
  pair.settle();
  for (int i = 0; i < 5000; ++i) pair.b.poll();
  pair.b.queue.make_unwatchable();
  const int before = pair.b.context_events.requests;
  ASSERT_TRUE(pair.b.queue.arm());
  EXPECT_TRUE(pair.b.queue.stuck());
  EXPECT_GT(pair.b.context_events.requests, before);
  ASSERT_EQ(pair.a.post(Operation::send, 0, 64, 10), Status::ok);
  EXPECT_FALSE(readable(pair.b.queue.descriptor()));
  const int signals = pair.b.queue_events.signals;
  ASSERT_TRUE(pair.b.queue.drive_for_absent());
  EXPECT_EQ(pair.b.queue_events.signals, signals + 1);
  pair.b.poll();
  EXPECT_EQ(pair.b.seen.size(), 1U);
}

// While the way to the peer's memory is being made, say.
TEST(Messages, PRG_3_whoever_fetches_may_sleep_while_the_fabric_has_no_room_for_it) {
  for (const bool rings : {false, true}) {
    MessageSide::Options options;
    options.engine.offer_from = 4096;
    options.weather.pulls = true;
    options.weather.doorbell = rings;
    options.weather.lingers = rings;
    MessagePair pair(options);
    pair.go_up();
    ASSERT_EQ(pair.b.receive(0, 50'000, 1), Status::ok);
    pair.settle();
    pair.b.ends[0].endpoint->refuses_pulls = true;
    ASSERT_EQ(pair.a.post(Operation::send, 0, 50'000, 10), Status::ok);
    pair.settle();
    bool asleep = false;
    for (int i = 0; i < 5 && !asleep; ++i) asleep = pair.b.queue.arm();
    ASSERT_TRUE(asleep);
    EXPECT_TRUE(pair.b.queue.stuck());
    const int signals = pair.b.queue_events.signals;
    ASSERT_TRUE(pair.b.queue.drive_for_absent());
    EXPECT_EQ(pair.b.queue_events.signals, signals) << "there is nothing yet";
    pair.b.ends[0].endpoint->refuses_pulls = false;
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(pair.b.queue.drive_for_absent());
    EXPECT_EQ(pair.b.queue_events.signals, signals + 1);
    pair.b.poll();
    EXPECT_EQ(pair.b.seen.size(), 1U);
  }
}

[[nodiscard]] MessageSide::Options lingering() {
  MessageSide::Options options;
  options.weather.doorbell = options.weather.lingers = true;
  return options;
}

void await_rest(MessagePair& pair) {
  for (int i = 0; i < 5; ++i) {
    pair.settle();
    pair.carry_rings();
  }
  pair.settle();
}

// Takes what is there first.
[[nodiscard]] bool fall_asleep(MessageSide& side) {
  for (int i = 0; i < 5; ++i) {
    side.poll();
    if (side.queue.arm()) return true;
  }
  return false;
}

TEST(Messages, PRG_3_a_ring_that_overtakes_its_message_is_answered_until_the_message_comes) {
  MessagePair pair(lingering());
  pair.go_up();
  ASSERT_EQ(pair.b.receive(0, 64, 1), Status::ok);
  await_rest(pair);
  ASSERT_TRUE(pair.b.queue.arm());
  pair.a.poll();
  ASSERT_EQ(pair.a.post(Operation::send, 0, 64, 10), Status::ok);
  const auto late = std::exchange(pair.b.queue.inbox, {});
  ASSERT_FALSE(late.empty());
  pair.carry_rings();
  ASSERT_TRUE(readable(pair.b.queue.descriptor()));
  pair.b.poll();
  ASSERT_TRUE(pair.b.seen.empty());
  // Both sleep. What b says then is heard by a, which rings again.
  ASSERT_TRUE(fall_asleep(pair.a));
  ASSERT_TRUE(pair.b.queue.arm());
  pair.b.queue.inbox.insert(pair.b.queue.inbox.begin(), late.begin(), late.end());
  pair.carry_rings();
  EXPECT_TRUE(readable(pair.a.queue.descriptor())) << "nobody looks at what b said";
  pair.a.poll();
  pair.carry_rings();
  EXPECT_TRUE(readable(pair.b.queue.descriptor()));
  pair.b.poll();
  EXPECT_EQ(pair.b.seen.size(), 1U);
}

TEST(Messages, PRG_3_who_sleeps_after_data_rings_a_peer_whose_own_word_may_be_under_way) {
  MessagePair pair(lingering());
  pair.go_up();
  ASSERT_EQ(pair.b.receive(0, 64, 1), Status::ok);
  await_rest(pair);
  ASSERT_TRUE(pair.b.queue.arm());
  const auto notice = std::exchange(pair.a.queue.inbox, {});
  ASSERT_FALSE(notice.empty());
  const int before = pair.a.ends[0].events.rings;
  ASSERT_EQ(pair.a.post(Operation::send, 0, 64, 10), Status::ok);
  EXPECT_EQ(pair.a.ends[0].events.rings, before);
  ASSERT_TRUE(fall_asleep(pair.a));
  pair.carry_rings();
  EXPECT_TRUE(readable(pair.b.queue.descriptor()));
  pair.b.poll();
  EXPECT_EQ(pair.b.seen.size(), 1U);
}

TEST(Messages, PRG_4_rings_come_to_rest) {
  MessagePair pair(lingering());
  pair.go_up();
  ASSERT_EQ(pair.b.receive(0, 64, 1), Status::ok);
  await_rest(pair);
  ASSERT_EQ(pair.a.post(Operation::send, 0, 64, 10), Status::ok);
  int rings = -1;
  for (int i = 0; i < 20; ++i) {
    for (MessageSide* side : {&pair.a, &pair.b}) {
      side->poll();
      static_cast<void>(side->queue.arm());
    }
    pair.carry_rings();
    const int now = pair.a.ends[0].events.rings + pair.b.ends[0].events.rings;
    if (now == rings && i > 10) break;
    rings = now;
    ASSERT_LT(i, 19) << "they ring each other for ever";
  }
}

TEST(Messages, PRG_5_what_may_linger_is_looked_after_until_it_is_gone) {
  MessagePair pair(lingering());
  pair.go_up();
  await_rest(pair);
  pair.a.queue.gives_back = false;
  ASSERT_EQ(pair.b.receive(0, 64, 1), Status::ok);
  ASSERT_EQ(pair.a.post(Operation::send, 0, 64, 10), Status::ok);
  static_cast<void>(pair.a.queue.arm());
  EXPECT_GT(pair.a.queue.buffers_under_way(), 0U) << "nothing tells when the fabric has sent it";
  EXPECT_TRUE(pair.a.queue.stuck()) << "nobody moves it on";
  pair.a.queue.gives_back = true;
  for (int i = 0; i < 20 && pair.a.queue.stuck(); ++i)
    pair.a.context.service(std::chrono::steady_clock::now());
  EXPECT_FALSE(pair.a.queue.stuck());
}

void sleep_and_be_rung_for(const FabricWeather& weather) {
  MessageSide::Options options;
  options.weather = weather;
  MessagePair pair(options);
  pair.go_up();
  ASSERT_EQ(pair.b.receive(0, 64, 1), Status::ok);
  pair.settle();
  pair.carry_rings();
  pair.settle();
  ASSERT_TRUE(pair.b.queue.arm());
  EXPECT_FALSE(readable(pair.b.queue.descriptor()));
  pair.a.poll();
  const int before = pair.a.ends[0].events.rings;
  ASSERT_EQ(pair.a.post(Operation::send, 0, 64, 10), Status::ok);
  EXPECT_EQ(pair.a.ends[0].events.rings, before + 1);
  pair.carry_rings();
  EXPECT_TRUE(readable(pair.b.queue.descriptor()));
  pair.b.poll();
  EXPECT_FALSE(readable(pair.b.queue.descriptor()));
  ASSERT_EQ(pair.b.seen.size(), 1U);
  // Awake from now on: no more rings.
  for (std::uint64_t i = 0; i < 10; ++i) {
    ASSERT_EQ(pair.b.receive(0, 64, 1), Status::ok);
    ASSERT_EQ(pair.a.post(Operation::send, 0, 64, 10), Status::ok);
    pair.settle();
  }
  EXPECT_EQ(pair.a.ends[0].events.rings, before + 1);
}

TEST(Messages, PRG_3_who_sleeps_without_a_descriptor_of_the_fabric_is_rung_for) {
  FabricWeather weather;
  weather.doorbell = true;
  sleep_and_be_rung_for(weather);
}

TEST(Messages, PRG_3_who_sleeps_on_a_descriptor_that_does_not_tell_of_its_peer_is_rung_for) {
  FabricWeather weather;
  weather.mute_paths = true;
  sleep_and_be_rung_for(weather);
}

TEST(Messages, PRG_3_what_leaves_before_the_notice_is_seen_is_rung_for_as_well) {
  MessageSide::Options options;
  options.weather.doorbell = true;
  MessagePair pair(options);
  pair.go_up();
  ASSERT_EQ(pair.b.receive(0, 64, 1), Status::ok);
  pair.settle();
  ASSERT_TRUE(pair.b.queue.arm());
  const int before = pair.a.ends[0].events.rings;
  ASSERT_EQ(pair.a.post(Operation::send, 0, 64, 10), Status::ok);  // has not polled: knows nothing yet
  EXPECT_EQ(pair.a.ends[0].events.rings, before);
  pair.a.poll();
  EXPECT_EQ(pair.a.ends[0].events.rings, before + 1);
}

// Until it would sleep without a limit.
void let_helper_sleep(MessageSide& side) {
  for (int i = 0; i < 100; ++i) {
    if (side.context.service(std::chrono::steady_clock::now()) ==
        std::chrono::steady_clock::time_point::max())
      return;
  }
  ADD_FAILURE() << "the helper finds no rest";
}

TEST(Messages, PRG_3_a_poll_beside_a_sleeper_is_made_good_by_the_helper) {
  MessageSide::Options options;
  options.weather.doorbell = true;
  MessagePair pair(options);
  pair.go_up();
  for (std::uint64_t i = 0; i < 2; ++i) ASSERT_EQ(pair.b.receive(0, 64, i), Status::ok);
  pair.settle();
  pair.carry_rings();
  pair.settle();
  ASSERT_TRUE(pair.b.queue.arm());
  let_helper_sleep(pair.b);
  pair.a.poll();
  ASSERT_EQ(pair.a.post(Operation::send, 0, 64, 10), Status::ok);
  pair.carry_rings();
  // Another thread polls, and takes the message for which the first one would have been woken.
  const int asked = pair.b.context_events.requests;
  pair.settle();
  ASSERT_EQ(pair.b.seen.size(), 1U);
  EXPECT_FALSE(readable(pair.b.queue.descriptor()));
  EXPECT_GT(pair.b.context_events.requests, asked) << "nobody prepares the sleeper's next wake-up";
  for (int i = 0; i < 2; ++i) pair.b.context.service(std::chrono::steady_clock::now());
  pair.a.poll();
  ASSERT_EQ(pair.a.post(Operation::send, 0, 64, 11), Status::ok);
  pair.carry_rings();
  EXPECT_TRUE(readable(pair.b.queue.descriptor()));
}

TEST(Messages, PRG_5_what_is_posted_while_both_sides_sleep_is_rung_for) {
  MessageSide::Options options;
  options.weather.doorbell = true;
  MessagePair pair(options);
  pair.go_up();
  ASSERT_EQ(pair.b.receive(0, 64, 1), Status::ok);
  pair.settle();
  pair.carry_rings();
  pair.settle();
  for (MessageSide* side : {&pair.a, &pair.b}) {
    ASSERT_TRUE(side->queue.arm());
    let_helper_sleep(*side);
  }
  pair.carry_rings();
  // A thread of a's that does not poll.
  const int asked = pair.a.context_events.requests;
  ASSERT_EQ(pair.a.post(Operation::send, 0, 64, 10), Status::ok);
  if (pair.a.ends[0].events.rings == pair.a.ends[0].rings_carried) {
    EXPECT_GT(pair.a.context_events.requests, asked) << "b's notice lies unread, and nobody is to read it";
    pair.a.context.service(std::chrono::steady_clock::now());
  }
  pair.carry_rings();
  EXPECT_TRUE(readable(pair.b.queue.descriptor()));
}

TEST(Messages, PRG_4_a_peer_that_cannot_be_told_costs_the_helper_little) {
  MessageSide::Options options;
  options.weather.doorbell = true;
  options.weather.later = 1;
  options.messages.buffers = {.size = 1000, .kept = 2, .spare = 4, .most = 2};
  MessagePair pair(options);
  pair.go_up();
  for (std::uint64_t i = 0; i < 2; ++i) ASSERT_EQ(pair.b.receive(0, 64, i), Status::ok);
  pair.settle();
  pair.a.queue.gives_back = false;  // as when the peer is stopped
  for (std::uint64_t i = 0; i < 2; ++i) ASSERT_EQ(pair.a.post(Operation::send, 0, 64, i), Status::ok);
  pair.a.poll();
  static_cast<void>(pair.a.queue.arm());
  const int asked = pair.a.context_events.requests;
  for (int i = 0; i < 100; ++i) {
    const auto now = std::chrono::steady_clock::now();
    EXPECT_GT(pair.a.context.service(now), now);
  }
  EXPECT_LE(pair.a.context_events.requests, asked + 1) << "the helper asks itself to come at once";
}

TEST(Messages, PRG_3_two_sleepers_leave_each_other_alone) {
  MessageSide::Options options;
  options.weather.doorbell = true;
  MessagePair pair(options);
  pair.go_up();
  int rings = 0;
  for (int i = 0; i < 10; ++i) {
    pair.a.poll();
    pair.b.poll();
    ASSERT_TRUE(pair.a.queue.arm());
    ASSERT_TRUE(pair.b.queue.arm());
    pair.carry_rings();
    if (i == 5) rings = pair.a.ends[0].events.rings + pair.b.ends[0].events.rings;
  }
  EXPECT_EQ(pair.a.ends[0].events.rings + pair.b.ends[0].events.rings, rings);
  EXPECT_FALSE(readable(pair.a.queue.descriptor()));
  EXPECT_FALSE(readable(pair.b.queue.descriptor()));
}

}  // namespace
}  // namespace weft::engine::test
