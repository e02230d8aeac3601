// Reading another process's memory, with a ticket that tells whether it still holds what was offered.
#include "cross_memory.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <vector>

#include "pair.hpp"

namespace weft::engine::test {
namespace {

using Submitted = MessageEndpoint::Submitted;

struct Token {
  std::array<std::byte, CrossMemory::token_size> bytes{};
  explicit Token(std::span<std::byte> memory) {
    EXPECT_EQ(CrossMemory::offer({memory.data(), memory.size(), 0}, bytes), bytes.size());
  }
};

class CrossMemoryTest : public testing::Test {
 protected:
  [[nodiscard]] Submitted pull(std::span<const std::byte> token, std::uint64_t offset, std::uint64_t length) {
    return puller.pull(token, offset, to.data(), length, code);
  }
  FakeHost host;
  CrossMemory owner{host};
  CrossMemory puller{host};
  std::vector<std::byte> from = std::vector<std::byte>(100'000, std::byte{7});
  std::vector<std::byte> to = std::vector<std::byte>(100'000);
  std::int32_t code = 0;
};

TEST_F(CrossMemoryTest, what_is_offered_is_read) {
  ASSERT_TRUE(puller.connect(owner.address()));
  EXPECT_TRUE(puller.reaches());
  const Token token(from);
  from[99'999] = std::byte{9};
  EXPECT_EQ(pull(token.bytes, 50'000, 50'000), Submitted::done);
  EXPECT_EQ(to[0], std::byte{7});
  EXPECT_EQ(to[49'999], std::byte{9});
  EXPECT_EQ(to[50'000], std::byte{0});
}

TEST_F(CrossMemoryTest, what_was_withdrawn_counts_for_nothing) {
  ASSERT_TRUE(puller.connect(owner.address()));
  owner.withdraw();
  EXPECT_EQ(pull(Token(from).bytes, 0, 100), Submitted::broken);
  EXPECT_EQ(code, -ECANCELED);
}

TEST_F(CrossMemoryTest, SEC_1_addresses_and_tokens_that_lie) {
  CrossMemory::Address address = owner.address();
  address.ticket ^= 1;
  EXPECT_FALSE(puller.connect(address));
  address = owner.address();
  address.ticket_at = 8;
  EXPECT_FALSE(puller.connect(address));
  address = owner.address();
  address.process = 0;
  EXPECT_FALSE(puller.connect(address));
  EXPECT_FALSE(puller.connect({}));
  EXPECT_FALSE(puller.reaches());
  ASSERT_TRUE(puller.connect(owner.address()));
  const std::array<std::byte, 8> nowhere{};
  EXPECT_EQ(pull(nowhere, 0, 100), Submitted::broken);
  EXPECT_EQ(code, -EFAULT);
  const Token token(from);
  EXPECT_EQ(pull(std::span(token.bytes).first(7), 0, 100), Submitted::broken);
  std::array<std::byte, 8> at_the_end{};
  at_the_end.fill(std::byte{0xff});
  EXPECT_EQ(pull(at_the_end, 0, 100'000), Submitted::broken);
}

TEST_F(CrossMemoryTest, of_another_process_while_it_lives) {
  std::array<int, 2> pipe_ends{};
  ASSERT_EQ(::pipe(pipe_ends.data()), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // Its own copy, with another content.
    std::fill(from.begin(), from.end(), std::byte{21});
    const auto address = owner.address();
    if (::write(pipe_ends[1], &address, sizeof address) != sizeof address) ::_exit(1);
    for (;;) ::pause();
  }
  CrossMemory::Address address{};
  ASSERT_EQ(::read(pipe_ends[0], &address, sizeof address), static_cast<ssize_t>(sizeof address));
  EXPECT_EQ(address.process, static_cast<std::uint32_t>(child));
  const bool allowed = puller.connect(address);
  const Submitted before = allowed ? pull(Token(from).bytes, 0, from.size()) : Submitted::done;
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  for (const int end : pipe_ends) ::close(end);
  if (!allowed) return;  // where the kernel forbids it, nothing is offered
  EXPECT_EQ(before, Submitted::done);
  EXPECT_EQ(to.front(), std::byte{21});
  EXPECT_EQ(to.back(), std::byte{21});
  EXPECT_EQ(pull(Token(from).bytes, 0, from.size()), Submitted::broken);
  EXPECT_EQ(code, -ESRCH);
}

}  // namespace
}  // namespace weft::engine::test
