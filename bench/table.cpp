#include "table.hpp"

#include <fmt/format.h>

#include <optional>

namespace perf {
namespace {

constexpr std::string_view figures_format = " {:>8} {:>8} {:>9} {:>8}";
constexpr std::string_view weft_format = "{:<9} {:<9} {:<20} {:>7} {:<9} {:>5} {:>5}";
constexpr std::size_t weft_width = 70;  // of what weft_format prints

std::string number(const std::optional<double>& value, int decimals) {
  return value ? fmt::format("{:.{}f}", *value, decimals) : "-";
}

std::string figures_text(const Figures& figures) {
  return fmt::format(fmt::runtime(figures_format), latency_text(figures.latency_p50, "-"),
                     number(figures.latency_p99, 2), figures.rate ? rate_text(*figures.rate) : "-",
                     number(figures.bandwidth, 0));
}

std::string ratio_text(const RowResult& result) {
  if (result.comparisons.empty() || !result.comparisons.front().ratio) return "-";
  const RatioSummary& ratio = *result.comparisons.front().ratio;
  const int decimals = ratio.median < 10 ? 3 : 1;
  return fmt::format("{:.{}f} [{:.{}f}, {:.{}f}]{}", ratio.median, decimals, ratio.interval.low, decimals,
                     ratio.interval.high, decimals, ratio.resolved ? "" : " not resolved");
}

}  // namespace

std::string rate_text(double rate) {
  if (rate < 0.01) return fmt::format("{:.5f}", rate);
  if (rate < 0.1) return fmt::format("{:.4f}", rate);
  return fmt::format("{:.{}f}", rate, rate < 1 ? 3 : 2);
}

std::string latency_text(const std::optional<double>& microseconds, std::string_view none) {
  if (!microseconds) return std::string(none);
  return fmt::format("{:.{}f}", *microseconds, *microseconds < 0.1 ? 4 : 2);
}

std::string table_header() {
  return fmt::format(fmt::runtime(weft_format), "provider", "fabric", "operation", "size", "level", "depth",
                     "batch") +
         fmt::format(fmt::runtime(figures_format), "p50 us", "p99 us", "M msg/s", "MB/s") +
         "  ratio to bare [95 %]\n";
}

std::string table_row(const RowResult& result) {
  const Workload& workload = result.workload;
  std::string text =
      fmt::format(fmt::runtime(weft_format), result.provider, result.fabric.empty() ? "-" : result.fabric,
                  title(workload), size_text(workload.size), to_string(workload.level), workload.depth,
                  workload.batch) +
      figures_text(result.weft) + "  " + ratio_text(result) + "\n";
  if (!result.weft_problem.empty())
    text += fmt::format("          weft did not run: {}\n", result.weft_problem);
  const std::string label =
      fmt::format("{:20}{}, {}", "", result.native_name.empty() ? "bare" : result.native_name,
                  to_string(workload.native_kind));
  if (result.native_problem.empty()) {
    text += fmt::format("{:<{}}", label, weft_width) + figures_text(result.native) + "\n";
  } else {
    text += fmt::format("{}: no baseline: {}\n", label, result.native_problem);
  }
  return text;
}

std::string table_legend() {
  return fmt::format(
      "Each row is followed by the same work on the bare fabric, done in turns with it. Latency is half a "
      "round\n"
      "trip at level 'received', a full one at 'completed'; of a post or a poll, what each operation costs "
      "its\n"
      "caller. p99 wants {} samples, else '-'. MB/s: 10^6 bytes.\n"
      "Ratio: weft / bare, median of the pairs with its 95 % interval; below 1 is better for latencies, "
      "above 1\n"
      "for rates and bandwidths. A row of {} s or more starts its processes anew {} to {} times, and each "
      "start\n"
      "counts once; a shorter one cannot see what one start differs from the next, often some per cent.\n"
      "'not resolved': fewer than {} pairs, or the interval is wider than +-{:.0f} %.\n",
      percentile_99_samples, static_cast<double>(fewest_starts) * seconds_per_start, fewest_starts,
      most_starts, resolved_pairs, resolved_margin * 100);
}

}  // namespace perf
