#include "statistics.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace perf {
namespace {

template <typename Number>
double quantile_of(std::vector<Number>& values, double fraction) {
  if (values.empty()) return 0;
  const double position = std::clamp(fraction, 0.0, 1.0) * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(below);
  std::nth_element(values.begin(), at, values.end());
  const auto low = static_cast<double>(*at);
  if (below + 1 == values.size()) return low;
  // nth_element leaves everything after `at` at least as large: the neighbour is the smallest of those.
  const auto high = static_cast<double>(*std::min_element(at + 1, values.end()));
  return low + (high - low) * (position - static_cast<double>(below));
}

// The largest k with P(Binomial(n, 1/2) < k) <= 2.5 %: the k-th smallest and k-th largest values bound the
// median.
std::size_t median_rank(std::size_t count) {
  const auto n = static_cast<double>(count);
  double cumulated = 0;
  for (std::size_t k = 0; k <= count / 2; ++k) {
    const auto x = static_cast<double>(k);
    const double log_probability =
        std::lgamma(n + 1) - std::lgamma(x + 1) - std::lgamma(n - x + 1) - n * std::log(2.0);
    cumulated += std::exp(log_probability);
    if (cumulated > 0.025) return k;
  }
  return count / 2;
}

}  // namespace

double quantile(std::vector<double> values, double fraction) { return quantile_of(values, fraction); }

double quantile(std::vector<std::uint32_t> values, double fraction) { return quantile_of(values, fraction); }

double median(std::vector<double> values) { return quantile_of(values, 0.5); }

Interval median_interval(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const std::size_t rank = std::max<std::size_t>(median_rank(values.size()), 1);
  return {values[rank - 1], values[values.size() - rank]};
}

RatioSummary summarize_ratios(std::span<const AbbaPair> pairs) {
  std::map<std::size_t, std::vector<double>> by_start;
  std::size_t count = 0;
  for (const AbbaPair& pair : pairs) {
    if (pair.native <= 0) continue;
    by_start[pair.start].push_back(pair.ratio());
    ++count;
  }
  std::vector<double> ratios;
  if (by_start.size() == 1) ratios = by_start.begin()->second;
  if (by_start.size() > 1) {
    for (const auto& [start, of_start] : by_start) ratios.push_back(median(of_start));
  }
  RatioSummary summary;
  summary.median = median(ratios);
  summary.interval = median_interval(ratios);
  summary.resolved = count >= resolved_pairs &&
                     summary.interval.low >= summary.median * (1 - resolved_margin) &&
                     summary.interval.high <= summary.median * (1 + resolved_margin);
  return summary;
}

}  // namespace perf
