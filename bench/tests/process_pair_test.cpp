// The machinery that starts contenders and talks with them, with contenders made up for the purpose.
#include "process_pair.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <set>
#include <stdexcept>

#include "baselines.hpp"
#include "contest.hpp"
#include "forked_process.hpp"

namespace perf {
namespace {

class QuietServer : public ServerRole {
 public:
  std::string address() const override { return "somewhere"; }
  void accept() override {}
  void serve(std::uint64_t) override {}
};

class FailingServer final : public QuietServer {
 public:
  void serve(std::uint64_t) override { throw std::runtime_error("the server's own words"); }
};

class DyingServer final : public QuietServer {
 public:
  void serve(std::uint64_t) override { ::_exit(3); }
};

class CountingClient final : public ClientRole {
 public:
  explicit CountingClient(std::string address) : address_(std::move(address)) {}
  std::string fabric() const override { return address_; }
  Slice run(std::uint64_t operations) override { return {operations, 0.001, {1, 2, 3}}; }

 private:
  std::string address_;
};

template <typename Server>
Contender contender_with() {
  return {
      "made up", [](const Workload&) { return std::make_unique<Server>(); },
      [](const Workload&, const std::string& address) { return std::make_unique<CountingClient>(address); }};
}

Cores any_cores() { return {0, 0}; }

TEST(ProcessPair, CarriesTheAddressAndTheSlice) {
  ProcessPair pair(contender_with<QuietServer>(), {}, any_cores());
  EXPECT_EQ(pair.fabric(), "somewhere");
  const Slice slice = pair.run(17);
  EXPECT_EQ(slice.operations, 17U);
  EXPECT_DOUBLE_EQ(slice.seconds, 0.001);
  EXPECT_EQ(slice.round_trips, (std::vector<std::uint32_t>{1, 2, 3}));
}

template <typename Server>
std::string words_of() {
  ProcessPair pair(contender_with<Server>(), {}, any_cores());
  try {
    (void)pair.run(1);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "nothing";
}

TEST(ProcessPair, ReportsWhyAServerFailed) {
  EXPECT_EQ(words_of<FailingServer>(), "server: the server's own words");
}

TEST(ProcessPair, NoticesAServerThatDies) {
  EXPECT_EQ(words_of<DyingServer>(), "server: the process is gone without a word");
}

TEST(InChildProcess, ReturnsTheTextOrTheReason) {
  EXPECT_EQ(in_child_process([] { return std::string("done there"); }), "done there");
  const auto failing = []() -> std::string { throw std::runtime_error("no such thing"); };
  EXPECT_THROW((void)in_child_process(failing), std::runtime_error);
}

ContestPlan short_plan() {
  return {any_cores(), std::chrono::steady_clock::now() + std::chrono::milliseconds(50), {}};
}

TEST(Contest, HasAsManyStartsAsTheTimeAllows) {
  EXPECT_EQ(starts_within(12, 1, 0), 12U);
  EXPECT_EQ(starts_within(100, 1, 0), most_starts);
  EXPECT_EQ(starts_within(6, 1, 0.5), fewest_starts);
  EXPECT_EQ(starts_within(5.9, 1, 0), 1U) << "fewer give no interval";
  EXPECT_EQ(starts_within(12, 1, 0.75), 8U) << "half of the time";
  EXPECT_EQ(starts_within(12, 1, 2), 1U);
  EXPECT_EQ(starts_within(-1, 1, 0), 1U);
}

// All of them are measured.
TEST(Contest, StartsTheProcessesAnewWhenThereIsTime) {
  const Contender contender = contender_with<QuietServer>();
  const ContestPlan plan{
      any_cores(), std::chrono::steady_clock::now() + std::chrono::seconds(3), {}, 3.0 / 8};
  const RowResult result = run_contest("any", {.metric = Metric::rate}, contender, contender, plan);
  EXPECT_EQ(result.weft_problem, "");
  std::set<std::size_t> starts;
  for (const AbbaPair& pair : result.comparisons.at(0).pairs) starts.insert(pair.start);
  EXPECT_GE(starts.size(), fewest_starts);
  EXPECT_LE(starts.size(), most_starts);
  EXPECT_EQ(starts.size(), *starts.rbegin() + 1);
}

TEST(Contest, ComparesLikeWithLike) {
  const Contender contender = contender_with<QuietServer>();
  const RowResult result = run_contest("any", {.metric = Metric::rate}, contender, contender, short_plan());
  EXPECT_EQ(result.weft_problem, "");
  EXPECT_EQ(result.native_problem, "");
  ASSERT_TRUE(result.comparisons.at(0).ratio);
  EXPECT_FALSE(result.comparisons[0].pairs.empty());
  // The made-up clock always says 1 ms, so what differs is only how many operations each side was calibrated
  // to.
  ASSERT_TRUE(result.weft.rate);
  EXPECT_GT(*result.weft.rate, 0);
}

TEST(Contest, SaysThatABaselineIsMissing) {
  const Contender contender = contender_with<QuietServer>();
  const RowResult result =
      run_contest("any", {.metric = Metric::rate}, contender, std::nullopt, short_plan());
  EXPECT_NE(result.native_problem, "");
  EXPECT_TRUE(result.weft.rate);
  EXPECT_FALSE(result.comparisons.at(0).ratio);
}

TEST(Contest, ShowsTheBaselineAlthoughWeftFails) {
  const RowResult result = run_contest("any", {.metric = Metric::rate}, contender_with<FailingServer>(),
                                       contender_with<QuietServer>(), short_plan());
  EXPECT_EQ(result.weft_problem, "server: the server's own words");
  EXPECT_TRUE(result.native.rate);
}

TEST(Baselines, AreFoundThroughDecoratorsAndFabrics) {
  const BaselineRegistration registration({"made-up", contender_with<QuietServer>()});
  EXPECT_TRUE(find_baseline("made-up"));
  EXPECT_TRUE(find_baseline("trace+made-up"));
  EXPECT_TRUE(find_baseline("strict+made-up:eth0"));
  EXPECT_FALSE(find_baseline("made"));
  EXPECT_FALSE(find_baseline("made-up-too"));
}

TEST(Baselines, SocketsStandBesideTcp) { EXPECT_TRUE(find_baseline("tcp")); }

}  // namespace
}  // namespace perf
