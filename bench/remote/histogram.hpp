// How long each of very many operations took, in little memory: exact to one part in 128, whatever the range.
#pragma once

#include <cstdint>
#include <vector>

namespace perf::remote {

class Histogram {
 public:
  struct Bucket {
    std::uint64_t low = 0;   ///< Nanoseconds, the first that belongs to it.
    std::uint64_t high = 0;  ///< The last.
    std::uint64_t count = 0;
  };

  Histogram();

  /// Never allocates. Noted while the clock runs.
  void note(std::uint64_t nanoseconds) noexcept {
    ++counts_[index_of(nanoseconds)];
    ++count_;
    sum_ += nanoseconds;
    if (nanoseconds > largest_) largest_ = nanoseconds;
  }

  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] std::uint64_t largest() const { return largest_; }
  [[nodiscard]] double mean() const {
    return count_ == 0 ? 0 : static_cast<double>(sum_) / static_cast<double>(count_);
  }
  /// The value that `fraction` of all do not exceed; 0 when there is none.
  [[nodiscard]] std::uint64_t quantile(double fraction) const;
  /// What is not empty, in ascending order; `per_doubling` (a power of two up to 128) of them for each
  /// doubling.
  [[nodiscard]] std::vector<Bucket> buckets(std::uint32_t per_doubling) const;

 private:
  static constexpr std::uint32_t fine_bits = 7;
  static constexpr std::uint64_t fine = std::uint64_t{1} << fine_bits;

  static std::size_t index_of(std::uint64_t value) noexcept {
    if (value < fine) return value;
    const auto shift = static_cast<std::uint32_t>(63 - __builtin_clzll(value)) - fine_bits;
    return shift * fine + (value >> shift);
  }
  static std::uint64_t low_of(std::size_t index);

  std::vector<std::uint64_t> counts_;
  std::uint64_t count_ = 0;
  std::uint64_t sum_ = 0;
  std::uint64_t largest_ = 0;
};

}  // namespace perf::remote
