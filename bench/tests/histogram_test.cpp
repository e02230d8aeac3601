#include "remote/histogram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace perf::remote {
namespace {

TEST(Histogram, SmallValuesAreExact) {
  Histogram histogram;
  for (std::uint64_t value = 1; value <= 100; ++value) histogram.note(value);
  EXPECT_EQ(histogram.quantile(0.5), 50U);
  EXPECT_EQ(histogram.quantile(0.99), 99U);
  EXPECT_EQ(histogram.quantile(1), 100U);
  EXPECT_DOUBLE_EQ(histogram.mean(), 50.5);
}

TEST(Histogram, IsWithinOnePercentOfTheTruthOverNineDecades) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> exponent(0, 9);
  Histogram histogram;
  std::vector<std::uint64_t> values;
  for (int i = 0; i < 20'000; ++i) {
    values.push_back(static_cast<std::uint64_t>(std::pow(10, exponent(random))));
    histogram.note(values.back());
  }
  std::sort(values.begin(), values.end());
  for (const double fraction : {0.001, 0.1, 0.5, 0.9, 0.99, 0.999}) {
    const auto truth = static_cast<double>(values[static_cast<std::size_t>(fraction * 20'000) - 1]);
    EXPECT_NEAR(static_cast<double>(histogram.quantile(fraction)), truth, truth / 100 + 1) << fraction;
  }
  EXPECT_EQ(histogram.largest(), values.back());
}

TEST(Histogram, BucketsHoldEverythingOnceInOrder) {
  Histogram histogram;
  const std::vector<std::uint64_t> values = {0, 1, 127, 128, 129, 255, 256, 1'000'000, ~std::uint64_t{0}};
  for (const std::uint64_t value : values) histogram.note(value);
  for (const std::uint32_t per_doubling : {1U, 4U, 128U}) {
    const auto buckets = histogram.buckets(per_doubling);
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      const auto inside = [&](std::uint64_t value) {
        return value >= buckets[i].low && value <= buckets[i].high;
      };
      EXPECT_EQ(static_cast<std::uint64_t>(std::count_if(values.begin(), values.end(), inside)),
                buckets[i].count);
      if (i > 0) {
        EXPECT_GT(buckets[i].low, buckets[i - 1].high);
      }
      count += buckets[i].count;
    }
    EXPECT_EQ(count, values.size());
  }
}

TEST(Histogram, EmptyIsZero) {
  const Histogram histogram;
  EXPECT_EQ(histogram.quantile(0.5), 0U);
  EXPECT_DOUBLE_EQ(histogram.mean(), 0);
  EXPECT_TRUE(histogram.buckets(4).empty());
}

}  // namespace
}  // namespace perf::remote
