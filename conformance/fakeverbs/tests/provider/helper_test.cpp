// The helper beside a device that refuses for long: it comes back in a moment, not at once.
#include <algorithm>
#include <string_view>
#include <thread>

#include "loop.hpp"

namespace fakeverbs_test {
namespace {

std::uint64_t counter(const Loop& loop, std::string_view name) {
  const auto counters = loop.context.counters();
  const auto found = std::find_if(counters.begin(), counters.end(),
                                  [name](const weft::Counter& counter) { return counter.name == name; });
  return found == counters.end() ? 0 : found->value;
}

// Tries within a while that the program sleeps; each is a call of the device.
void expect_seldom(const Loop& loop, std::string_view name) {
  const auto start = std::chrono::steady_clock::now();
  const std::uint64_t before = counter(loop, name);
  std::this_thread::sleep_for(500ms);
  const std::uint64_t tries = counter(loop, name) - before;
  const auto milliseconds = static_cast<std::uint64_t>(
      std::chrono::ceil<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start).count());
  EXPECT_GT(tries, 0U) << "nobody tries again";
  EXPECT_LE(tries, milliseconds + 20);
}

TEST(Helper, TriesSeldomWhileSendsAreRefused) {
  expect_under_plan("send-enomem=/1", [] {
    Loop loop;
    ASSERT_EQ(loop.near.send(loop.region.slice(0, 64), 1), weft::Status::ok);
    expect_seldom(loop, "refused_doorbells");
  });
}

TEST(Helper, TriesSeldomWhileReceivesAreRefused) {
  expect_under_plan("receive-enomem=/1", [] {
    Loop loop;
    ASSERT_EQ(loop.far.receive(loop.region.slice(0, 64), 1), weft::Status::ok);
    expect_seldom(loop, "refused_doorbells");
  });
}

}  // namespace
}  // namespace fakeverbs_test
