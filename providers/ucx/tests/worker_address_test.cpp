#include "worker_address.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "worker.hpp"

namespace weft::ucx {
namespace {

class WorkersOfLanes : public testing::TestWithParam<const char*> {};

TEST_P(WorkersOfLanes, OfWorkersAreGood) {
  const Worker one(GetParam());
  const Worker other(GetParam());
  EXPECT_EQ(why_not(one.address(), other.address()), "");
  EXPECT_EQ(why_not(one.address(), one.address()), "");
  WorkerAddress parts;
  ASSERT_TRUE(WorkerAddress::parse(one.address(), parts));
  EXPECT_FALSE(parts.entries.empty());
}

TEST(WorkerAddresses, OfAnotherHostAreElsewhere) {
  const Worker one("shm");
  const Worker other("shm");
  EXPECT_FALSE(elsewhere(one.address(), other.address()));
  WorkerAddress parts;
  ASSERT_TRUE(WorkerAddress::parse(other.address(), parts));
  const std::vector<std::byte>& device = parts.entries.front().device;
  std::vector<std::byte> moved = other.address();
  const auto at = std::search(moved.begin(), moved.end(), device.begin(), device.end());
  ASSERT_NE(at, moved.end());
  *at ^= std::byte{1};
  EXPECT_TRUE(elsewhere(one.address(), moved));
}

TEST_P(WorkersOfLanes, CutOrLengthenedAreRefused) {
  const Worker one(GetParam());
  std::vector<std::byte> bytes = one.address();
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_NE(why_not(one.address(), std::span(bytes).first(length)), "") << length;
  bytes.push_back(std::byte{0});
  EXPECT_NE(why_not(one.address(), bytes), "");
}

// What is let through does not end the process, whatever stands in it.
TEST_P(WorkersOfLanes, AlteredOnesAreRefusedOrHarmless) {
  Worker one(GetParam());
  const Worker other(GetParam());
  std::mt19937 random(7);
  int refused = 0;
  constexpr int rounds = 400;
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::byte> bytes = other.address();
    const auto position =
        round < static_cast<int>(bytes.size()) ? static_cast<std::size_t>(round) : random() % bytes.size();
    bytes[position] ^= static_cast<std::byte>(1U << (random() % 8));
    if (!why_not(one.address(), bytes).empty()) {
      ++refused;
    } else {
      one.meet(bytes);
    }
  }
  EXPECT_GT(refused, rounds / 8);
  EXPECT_LT(refused, rounds);
}

INSTANTIATE_TEST_SUITE_P(Lanes, WorkersOfLanes, testing::Values("tcp", "shm", ""), [](const auto& info) {
  return *info.param == '\0' ? "all" : std::string(info.param);
});

}  // namespace
}  // namespace weft::ucx
