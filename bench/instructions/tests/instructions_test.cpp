// What the data path may not do, counted: allocate, lock in mode single, make more system calls than the
// batches it sends.
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <array>
#include <vector>

#include "decode.hpp"
#include "scenarios.hpp"

namespace instructions {
namespace {

// A call can have to wake a helper that sleeps, by chance several times in a row on a slow machine: then it
// is looked at again. What it always does shows in every round.
StepCount count(std::string_view name, weft::ThreadMode threads, int system_calls = 1) {
  const Scenario& one = scenario(name);
  std::vector<StepCount> counts;
  for (int round = 0; round < 6; ++round) {
    const auto more = count_steps([&] { return one.make({"tcp", threads}); }, 2);
    counts.insert(counts.end(), more.begin(), more.end());
    const StepCount best = undisturbed(counts);
    const bool calm = best.allocations == 0 && best.system_call_count() <= system_calls;
    if (calm && (best.locked == 0 || threads == weft::ThreadMode::safe)) break;
  }
  return undisturbed(counts);
}

class EveryCall : public testing::TestWithParam<std::string_view> {};

// THR-2; and posting and polling allocate nothing.
TEST_P(EveryCall, LocksNothingInModeSingleAndAllocatesNothing) {
  const StepCount single = count(GetParam(), weft::ThreadMode::single);
  EXPECT_GT(single.weft, 0U);
  EXPECT_EQ(single.locked, 0U);
  EXPECT_EQ(single.allocations, 0U);
  const StepCount safe = count(GetParam(), weft::ThreadMode::safe);
  EXPECT_GT(safe.locked, 0U) << "a counter that never sees a lock would pass anything";
  EXPECT_EQ(safe.allocations, 0U);
}

std::vector<std::string_view> names() {
  std::vector<std::string_view> all;
  for (const Scenario& one : scenarios()) all.push_back(one.name);
  return all;
}

std::string test_name(const testing::TestParamInfo<std::string_view>& info) {
  std::string name(info.param);
  for (char& letter : name) {
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0) letter = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Instructions, EveryCall, testing::ValuesIn(names()), test_name);

int send_calls(const StepCount& count) {
  int sum = 0;
  for (const long number : {SYS_sendto, SYS_sendmsg, SYS_write, SYS_writev, SYS_sendmmsg}) {
    const auto found = count.system_calls.find(number);
    if (found != count.system_calls.end()) sum += found->second;
  }
  return sum;
}

// OPS-2: batching is real.
TEST(Instructions, ABatchLeavesInOneSystemCall) {
  for (const std::string_view name : {"post send 64 B signalled x64", "post write 64 B signalled x64",
                                      "post send 8 B inline unsignalled x32", "post send 4 KiB signalled"}) {
    const StepCount batch = count(name, weft::ThreadMode::single);
    EXPECT_EQ(send_calls(batch), 1) << name;
    EXPECT_EQ(batch.system_call_count(), 1) << name;
  }
}

TEST(Instructions, ReceivesAskTheKernelNothing) {
  EXPECT_EQ(count("post receive", weft::ThreadMode::single, 0).system_call_count(), 0);
}

TEST(Instructions, AMessageIsTakenWithOneReceiveCall) {
  const StepCount one = count("poll, 1 received message", weft::ThreadMode::single);
  EXPECT_EQ(one.system_call_count(), 1);
}

TEST(Decode, KnowsLocksAndSystemCalls) {
  using Code = std::array<std::uint8_t, 5>;
  EXPECT_EQ(kind_of(Code{0xf0, 0x0f, 0xb1, 0x0f, 0x00}), InstructionKind::locked);       // lock cmpxchg
  EXPECT_EQ(kind_of(Code{0xf0, 0x48, 0x0f, 0xc1, 0x07}), InstructionKind::locked);       // lock xadd
  EXPECT_EQ(kind_of(Code{0x48, 0x87, 0x07, 0x90, 0x90}), InstructionKind::locked);       // xchg with memory
  EXPECT_EQ(kind_of(Code{0x48, 0x87, 0xc3, 0x90, 0x90}), InstructionKind::plain);        // xchg of registers
  EXPECT_EQ(kind_of(Code{0x0f, 0x05, 0x90, 0x90, 0x90}), InstructionKind::system_call);  // syscall
  EXPECT_EQ(kind_of(Code{0x48, 0x89, 0x07, 0x90, 0x90}), InstructionKind::plain);        // mov
}

}  // namespace
}  // namespace instructions
