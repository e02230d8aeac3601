// One row of the table: weft against its bare baseline, in short alternating slices.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "process_pair.hpp"
#include "role.hpp"
#include "statistics.hpp"
#include "workload.hpp"

namespace perf {

/// What one contender reached over all its slices; a figure that does not apply is empty.
struct Figures {
  std::optional<double> latency_p50;  ///< Microseconds; half a round trip or a full one, as the level says;
                                      ///< of a call: each operation's part.
  std::optional<double> latency_p99;  ///< Microseconds; only with percentile_99_samples or more.
  std::optional<double> rate;         ///< Million messages per second.
  std::optional<double> bandwidth;    ///< 10^6 bytes per second.
};

/// One measured quantity of a row, with the pairs behind it.
struct Comparison {
  std::string metric;           ///< latency_p50_us, latency_p99_us, rate_mps, bandwidth_mbps, call_us.
  std::vector<AbbaPair> pairs;  ///< In that metric's unit.
  std::optional<double> weft;   ///< Over all slices.
  std::optional<double> native;
  std::optional<RatioSummary> ratio;
};

struct RowResult {
  std::string provider;
  std::string fabric;
  Workload workload;
  std::string native_name;  ///< The baseline's name, or why there is none.
  Figures weft;
  Figures native;
  std::vector<Comparison> comparisons;  ///< The first is the one the table shows.
  std::string weft_problem;             ///< Why weft did not run; empty when it did.
  std::string native_problem;           ///< Why there is nothing to compare with; empty when there is.
  std::vector<double> probes;           ///< Shared-memory half round trips seen around the row, microseconds.
};

/// A row with time for `fewest_starts` starts its processes anew so often, `most_starts` times at most. What
/// memory and ports they happen to get moves a ratio by several per cent, and no number of pairs between the
/// same processes shows it. (They are forks of this program, so its address layout is the same for all.)
/// Fewer starts give no interval, so a shorter row has one.
inline constexpr double seconds_per_start = 1.0;
inline constexpr std::size_t fewest_starts = 6;
inline constexpr std::size_t most_starts = 16;

/// How many starts a row has that takes so many seconds, when one start costs `cost` seconds: at most half of
/// the time goes into starting.
[[nodiscard]] std::size_t starts_within(double seconds, double start_seconds, double cost) noexcept;

struct ContestPlan {
  Cores cores;
  std::chrono::steady_clock::time_point deadline;
  std::function<void()> tick;  ///< Called after every pair, for a progress bar.
  double start_seconds = seconds_per_start;
};

/// Measures until the deadline. Never throws for what a contender does: its problem is written into the
/// result.
[[nodiscard]] RowResult run_contest(const std::string& provider, const Workload& workload,
                                    const Contender& weft, const std::optional<Contender>& native,
                                    const ContestPlan& plan);

}  // namespace perf
