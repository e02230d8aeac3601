#include "histogram.hpp"

#include <algorithm>
#include <cmath>

namespace perf::remote {

Histogram::Histogram() : counts_(index_of(~std::uint64_t{0}) + 1, 0) {}

std::uint64_t Histogram::low_of(std::size_t index) {
  if (index < 2 * fine) return index;
  const std::size_t shift = index / fine - 1;
  return (index - shift * fine) << shift;
}

std::uint64_t Histogram::quantile(double fraction) const {
  if (count_ == 0) return 0;
  const auto wanted = static_cast<std::uint64_t>(
      std::max(1.0, std::ceil(std::clamp(fraction, 0.0, 1.0) * static_cast<double>(count_))));
  std::uint64_t seen = 0;
  for (std::size_t index = 0; index < counts_.size(); ++index) {
    seen += counts_[index];
    if (seen < wanted) continue;
    const std::uint64_t high = index + 1 < counts_.size() ? low_of(index + 1) - 1 : largest_;
    return std::min(high, largest_);
  }
  return largest_;
}

std::vector<Histogram::Bucket> Histogram::buckets(std::uint32_t per_doubling) const {
  const std::size_t together = fine / per_doubling;
  std::vector<Bucket> result;
  for (std::size_t first = 0; first < counts_.size(); first += together) {
    Bucket bucket{low_of(first), 0, 0};
    const std::size_t end = std::min(first + together, counts_.size());
    for (std::size_t index = first; index < end; ++index) bucket.count += counts_[index];
    bucket.high = end < counts_.size() ? low_of(end) - 1 : ~std::uint64_t{0};
    if (bucket.count > 0) result.push_back(bucket);
  }
  return result;
}

}  // namespace perf::remote
