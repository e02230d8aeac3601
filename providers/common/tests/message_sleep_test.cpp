// The fabric's descriptors stand in the sets of those who sleep only while somebody may.
#include <poll.h>

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

}  // namespace
}  // namespace weft::engine::test
