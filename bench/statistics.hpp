// The arithmetic behind the figures: no clocks, no processes, so that it can be tested by itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace perf {

/// Two contenders measured in the order A B B A, then B A A B: a drift that is steady over the four slices
/// cancels.
struct AbbaPair {
  double weft = 0;        ///< Mean of the two weft slices.
  double native = 0;      ///< Mean of the two bare slices.
  std::size_t start = 0;  ///< Which start of the processes it was measured with.

  [[nodiscard]] double ratio() const { return weft / native; }
};

struct Interval {
  double low = 0;
  double high = 0;
};

struct RatioSummary {
  double median = 0;
  Interval interval;      ///< 95 % confidence interval of the median.
  bool resolved = false;  ///< Whether the ratio counts, see resolved_pairs and resolved_margin.
};

/// A ratio counts when at least this many pairs put the median within this margin, with 95 % confidence.
inline constexpr std::size_t resolved_pairs = 40;
inline constexpr double resolved_margin = 0.03;

/// A 99th percentile needs this many samples before it says anything about the tail.
inline constexpr std::size_t percentile_99_samples = 100'000;

/// The value below which `fraction` (0 to 1) of the values lie, interpolated between neighbours; 0 when there
/// are none. The values need not be sorted.
[[nodiscard]] double quantile(std::vector<double> values, double fraction);
[[nodiscard]] double quantile(std::vector<std::uint32_t> values, double fraction);

[[nodiscard]] double median(std::vector<double> values);

/// Distribution-free 95 % confidence interval of the median from order statistics (binomial, exact). With
/// fewer than 6 values no such interval exists: then the smallest and the largest value are returned.
[[nodiscard]] Interval median_interval(std::vector<double> values);

/// Median of the pairwise ratios, its interval, and whether it counts. Where processes start and what memory
/// they get moves a ratio by several per cent for as long as they live, so with several starts each start
/// counts as one value: the median of its pairs.
[[nodiscard]] RatioSummary summarize_ratios(std::span<const AbbaPair> pairs);

}  // namespace perf
