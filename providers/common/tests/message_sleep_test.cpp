// Who sleeps is woken: by the fabric's descriptors, which stand in the sets of sleepers only while somebody
// may sleep, or by the peer's ring, which may overtake the message that it is for.
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

}  // namespace
}  // namespace weft::engine::test
