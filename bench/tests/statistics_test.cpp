#include "statistics.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace perf {
namespace {

TEST(Quantile, InterpolatesBetweenNeighbours) {
  EXPECT_DOUBLE_EQ(quantile(std::vector<double>{4, 1, 3, 2}, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(quantile(std::vector<double>{5, 1, 3}, 0.5), 3);
  EXPECT_DOUBLE_EQ(quantile(std::vector<double>{10, 20}, 0.25), 12.5);
}

TEST(Quantile, EndsAreTheExtremes) {
  const std::vector<std::uint32_t> values{7, 3, 9, 1};
  EXPECT_DOUBLE_EQ(quantile(values, 0), 1);
  EXPECT_DOUBLE_EQ(quantile(values, 1), 9);
}

TEST(Quantile, OfOneValueAndOfNone) {
  EXPECT_DOUBLE_EQ(quantile(std::vector<double>{42}, 0.99), 42);
  EXPECT_DOUBLE_EQ(quantile(std::vector<double>{}, 0.5), 0);
}

TEST(Quantile, FindsTheTail) {
  std::vector<std::uint32_t> values(1000, 10);
  for (std::size_t i = 0; i < 20; ++i) values[i * 50] = 500;
  EXPECT_DOUBLE_EQ(quantile(values, 0.5), 10);
  EXPECT_DOUBLE_EQ(quantile(values, 0.99), 500);
}

// Ranks of the 95 % interval as printed in tables of the sign test: for n = 10 the 2nd and 9th value, for n =
// 40 the 14th and 27th, for n = 100 the 40th and 61st.
TEST(MedianInterval, UsesTheRanksOfTheSignTest) {
  const auto interval_of = [](int count) {
    std::vector<double> values;
    for (int i = count; i >= 1; --i) values.push_back(i);
    return median_interval(values);
  };
  EXPECT_DOUBLE_EQ(interval_of(10).low, 2);
  EXPECT_DOUBLE_EQ(interval_of(10).high, 9);
  EXPECT_DOUBLE_EQ(interval_of(40).low, 14);
  EXPECT_DOUBLE_EQ(interval_of(40).high, 27);
  EXPECT_DOUBLE_EQ(interval_of(100).low, 40);
  EXPECT_DOUBLE_EQ(interval_of(100).high, 61);
}

TEST(MedianInterval, WithTooFewValuesSpansThemAll) {
  const Interval interval = median_interval({3, 1, 2});
  EXPECT_DOUBLE_EQ(interval.low, 1);
  EXPECT_DOUBLE_EQ(interval.high, 3);
}

// Not the formula again but what it promises: about 95 of 100 intervals hold the true median, here of a
// skewed distribution.
TEST(MedianInterval, CoversTheTrueMedian) {
  std::mt19937 random(20'000);
  std::exponential_distribution<double> latency(1.0);
  const double true_median = 0.6931471805599453;
  constexpr int trials = 2000;
  int covered = 0;
  for (int trial = 0; trial < trials; ++trial) {
    std::vector<double> values(60);
    for (double& value : values) value = latency(random);
    const Interval interval = median_interval(values);
    if (interval.low <= true_median && true_median <= interval.high) ++covered;
  }
  EXPECT_GE(covered, trials * 94 / 100);
  EXPECT_LE(covered, trials * 99 / 100);
}

std::vector<AbbaPair> pairs_with(std::size_t count, double ratio, double noise) {
  std::mt19937 random(7);
  std::normal_distribution<double> factor(1.0, noise);
  std::vector<AbbaPair> pairs;
  for (std::size_t i = 0; i < count; ++i) {
    const double native =
        i % 2 == 0 ? 5.0 : 8.0;  // The machine's two states: both contenders meet them alike.
    pairs.push_back({native * ratio * factor(random), native});
  }
  return pairs;
}

TEST(Ratio, IgnoresWhatBothContendersShare) {
  const RatioSummary summary = summarize_ratios(pairs_with(60, 1.05, 0.01));
  EXPECT_NEAR(summary.median, 1.05, 0.01);
  EXPECT_TRUE(summary.resolved);
}

TEST(Ratio, NeedsFortyPairs) {
  EXPECT_TRUE(summarize_ratios(pairs_with(resolved_pairs, 1.0, 0.001)).resolved);
  EXPECT_FALSE(summarize_ratios(pairs_with(resolved_pairs - 1, 1.0, 0.001)).resolved);
}

TEST(Ratio, NeedsANarrowInterval) {
  const RatioSummary summary = summarize_ratios(pairs_with(60, 1.0, 0.3));
  EXPECT_FALSE(summary.resolved);
  EXPECT_LT(summary.interval.low, summary.median);
  EXPECT_GT(summary.interval.high, summary.median);
}

// Each start of the processes has its own bias here. The interval must span it, however alike the pairs of
// one start are.
TEST(Ratio, EachStartCountsOnce) {
  std::vector<AbbaPair> pairs;
  for (std::size_t start = 0; start < 10; ++start) {
    const std::size_t count = start == 9 ? 1000 : 20;
    for (std::size_t i = 0; i < count; ++i)
      pairs.push_back({1.0 + 0.02 * static_cast<double>(start), 1.0, start});
  }
  const RatioSummary summary = summarize_ratios(pairs);
  EXPECT_DOUBLE_EQ(summary.median, 1.09);
  EXPECT_DOUBLE_EQ(summary.interval.low, 1.02);  // the 2nd and the 9th of ten
  EXPECT_DOUBLE_EQ(summary.interval.high, 1.16);
  EXPECT_FALSE(summary.resolved);
}

TEST(Ratio, MarginIsRelative) { EXPECT_TRUE(summarize_ratios(pairs_with(60, 40.0, 0.02)).resolved); }

TEST(Ratio, OfNothingIsNotResolved) {
  EXPECT_FALSE(summarize_ratios({}).resolved);
  EXPECT_FALSE(summarize_ratios(std::vector<AbbaPair>(50, AbbaPair{1.0, 0.0})).resolved);
}

}  // namespace
}  // namespace perf
