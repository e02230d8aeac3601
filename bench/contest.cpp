#include "contest.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <memory>

#include "machine.hpp"

namespace perf {
namespace {

using Clock = std::chrono::steady_clock;

// Slices are short, so that both contenders meet the same state of the machine, and long enough that waking
// up and meeting stay a small part of them.
constexpr double longest_slice = 0.010;
constexpr double shortest_slice = 0.002;
constexpr double wanted_pairs = 60;
constexpr int slices_per_pair = 4;

// Work is done in runs of so many operations.
std::uint32_t step_of(const Workload& workload) {
  const bool whole_windows = workload.metric == Metric::bandwidth || workload.metric == Metric::call;
  return std::max(workload.batch, whole_windows ? workload.depth : 1);
}

// A latency is half a round trip when the message is on its way for half of it.
double one_way_part(const Workload& workload) { return workload.level == Level::received ? 0.5 : 1.0; }

// Everything a contender has given so far, whatever processes it ran in.
class Tally {
 public:
  explicit Tally(const Workload& workload) : workload_(workload) {}

  void add(const Slice& slice) {
    operations_ += static_cast<double>(slice.operations);
    seconds_ += slice.seconds;
    round_trips_.insert(round_trips_.end(), slice.round_trips.begin(), slice.round_trips.end());
  }

  [[nodiscard]] Figures figures() const {
    Figures figures;
    if (operations_ == 0) return figures;
    if (workload_.metric == Metric::latency) {
      const double microseconds = one_way_part(workload_) / 1000;
      figures.latency_p50 = quantile(round_trips_, 0.5) * microseconds;
      if (round_trips_.size() >= percentile_99_samples) {
        figures.latency_p99 = quantile(round_trips_, 0.99) * microseconds;
      }
    }
    const double per_second = operations_ / seconds_;
    if (workload_.metric == Metric::call) {
      figures.latency_p50 = 1e6 / per_second;
    } else if (workload_.metric != Metric::latency) {
      figures.rate = per_second / 1e6;
      figures.bandwidth = per_second * static_cast<double>(workload_.size) / 1e6;
    }
    return figures;
  }

 private:
  Workload workload_;
  double operations_ = 0;
  double seconds_ = 0;
  std::vector<std::uint32_t> round_trips_;
};

// A contender at work.
class Side {
 public:
  Side(const Contender& contender, const Workload& workload, const Cores& cores, Tally& tally)
      : workload_(workload), pair_(contender, workload, cores), tally_(tally) {}

  [[nodiscard]] const std::string& fabric() const { return pair_.fabric(); }

  // Finds how many operations fill a slice.
  void calibrate(double slice_seconds) {
    const std::uint64_t step = step_of(workload_);
    operations_ = step;
    for (int attempt = 0; attempt < 12; ++attempt) {
      const double seconds = pair_.run(operations_).seconds;
      const double growth = std::min(slice_seconds / std::max(seconds, 1e-7), 16.0);
      const double wanted = std::ceil(static_cast<double>(operations_) * growth / static_cast<double>(step));
      operations_ = std::max<std::uint64_t>(static_cast<std::uint64_t>(wanted), 1) * step;
      if (growth > 0.7 && growth < 1.4) break;
    }
  }

  Slice run() {
    Slice slice = pair_.run(operations_);
    tally_.add(slice);
    return slice;
  }

 private:
  Workload workload_;
  ProcessPair pair_;
  Tally& tally_;
  std::uint64_t operations_ = 0;
};

// The two slices one contender has in a pair, as one value of a metric.
double value_of(const Workload& workload, double fraction, const Slice& one, const Slice& two) {
  if (workload.metric == Metric::latency) {
    const double sum = quantile(one.round_trips, fraction) + quantile(two.round_trips, fraction);
    return sum / 2 * one_way_part(workload) / 1000;
  }
  const double per_second =
      static_cast<double>(one.operations + two.operations) / (one.seconds + two.seconds);
  if (workload.metric == Metric::call) return 1e6 / per_second;
  return workload.metric == Metric::rate ? per_second / 1e6
                                         : per_second * static_cast<double>(workload.size) / 1e6;
}

std::unique_ptr<Side> start(const Contender& contender, const Workload& workload, const Cores& cores,
                            Tally& tally, double slice_seconds, std::string& problem) {
  try {
    auto side = std::make_unique<Side>(contender, workload, cores, tally);
    side->calibrate(slice_seconds);
    return side;
  } catch (const std::exception& error) {
    problem = error.what();
    return nullptr;
  }
}

// Only one contender runs: its figures still deserve to be seen.
void run_alone(Side& side, std::string& problem, Clock::time_point deadline, const ContestPlan& plan) {
  try {
    do {
      for (int slice = 0; slice < slices_per_pair; ++slice) side.run();
      if (plan.tick) plan.tick();
    } while (Clock::now() < deadline);
  } catch (const std::exception& error) {
    problem = error.what();
  }
}

void run_pairs(Side& weft, Side& native, std::size_t start, RowResult& result, Clock::time_point deadline,
               const ContestPlan& plan) {
  const Workload& workload = result.workload;
  std::vector<AbbaPair>& middle = result.comparisons[0].pairs;
  std::string* suspect = nullptr;
  struct Contestant {
    Side& side;
    std::string& problem;
  };
  const std::array<Contestant, 2> both{{{weft, result.weft_problem}, {native, result.native_problem}}};
  std::array<std::array<Slice, 2>, 2> slices;  // of weft, of the bare fabric
  const auto run = [&](std::size_t who, std::size_t turn) {
    suspect = &both.at(who).problem;
    slices.at(who).at(turn) = both.at(who).side.run();
  };
  std::size_t outer = start % 2;
  try {
    do {
      // Who has the two turns in the middle finds its caches warm for the second, so they change places.
      run(outer, 0);
      run(1 - outer, 0);
      run(1 - outer, 1);
      run(outer, 1);
      outer = 1 - outer;
      const auto& [a1, a2] = slices[0];
      const auto& [b1, b2] = slices[1];
      middle.push_back({value_of(workload, 0.5, a1, a2), value_of(workload, 0.5, b1, b2), start});
      if (workload.metric == Metric::latency) {
        result.comparisons[1].pairs.push_back(
            {value_of(workload, 0.99, a1, a2), value_of(workload, 0.99, b1, b2), start});
      }
      if (plan.tick) plan.tick();
    } while (Clock::now() < deadline);
  } catch (const std::exception& error) {
    *suspect = error.what();
  }
}

void fill_comparisons(RowResult& result) {
  for (Comparison& comparison : result.comparisons) {
    const auto figure = [&](const Figures& figures) {
      if (comparison.metric == "latency_p50_us" || comparison.metric == "call_us") return figures.latency_p50;
      if (comparison.metric == "latency_p99_us") return figures.latency_p99;
      if (comparison.metric == "rate_mps") return figures.rate;
      return figures.bandwidth;
    };
    comparison.weft = figure(result.weft);
    comparison.native = figure(result.native);
    if (!comparison.pairs.empty()) comparison.ratio = summarize_ratios(comparison.pairs);
  }
}

}  // namespace

std::size_t starts_within(double seconds, double start_seconds, double cost) noexcept {
  const double slots =
      std::min(seconds / std::max(start_seconds, 2 * cost), static_cast<double>(most_starts));
  return slots < static_cast<double>(fewest_starts) ? 1 : static_cast<std::size_t>(slots);
}

RowResult run_contest(const std::string& provider, const Workload& workload, const Contender& weft,
                      const std::optional<Contender>& native, const ContestPlan& plan) {
  RowResult result{.provider = provider,
                   .fabric = {},
                   .workload = workload,
                   .native_name = {},
                   .weft = {},
                   .native = {},
                   .comparisons = {},
                   .weft_problem = {},
                   .native_problem = {},
                   .probes = {}};
  if (workload.metric == Metric::latency) {
    result.comparisons.resize(2);
    result.comparisons[0].metric = "latency_p50_us";
    result.comparisons[1].metric = "latency_p99_us";
  } else {
    result.comparisons.resize(1);
    result.comparisons[0].metric = workload.metric == Metric::call   ? "call_us"
                                   : workload.metric == Metric::rate ? "rate_mps"
                                                                     : "bandwidth_mbps";
  }

  const double budget = std::chrono::duration<double>(plan.deadline - Clock::now()).count();
  const double slice_seconds =
      std::clamp(budget / (wanted_pairs * slices_per_pair), shortest_slice, longest_slice);
  std::size_t starts = starts_within(budget, plan.start_seconds, 0);

  result.probes.push_back(probe_cores(plan.cores));
  Tally weft_tally(workload);
  Tally native_tally(workload);
  if (native) {
    result.native_name = native->name;
  } else {
    result.native_problem = "this build has none for this provider";
  }
  for (std::size_t i = 0; i < starts; ++i) {
    auto deadline = Clock::now() + (plan.deadline - Clock::now()) / static_cast<int>(starts - i);
    const auto began = Clock::now();
    std::unique_ptr<Side> weft_side;
    std::unique_ptr<Side> native_side;
    const auto start_weft = [&] {
      weft_side = start(weft, workload, plan.cores, weft_tally, slice_seconds, result.weft_problem);
    };
    // Who starts first differs as well.
    if (i % 2 == 0) start_weft();
    if (native) {
      native_side = start(*native, workload, plan.cores, native_tally, slice_seconds, result.native_problem);
    }
    if (i % 2 != 0) start_weft();
    if (i == 0) {
      const double cost = std::chrono::duration<double>(Clock::now() - began).count();
      starts = starts_within(budget, plan.start_seconds, cost);
      deadline = began + (plan.deadline - began) / static_cast<int>(starts);
    }
    if (weft_side && native_side) {
      run_pairs(*weft_side, *native_side, i, result, deadline, plan);
    } else if (weft_side) {
      run_alone(*weft_side, result.weft_problem, deadline, plan);
    } else if (native_side) {
      run_alone(*native_side, result.native_problem, deadline, plan);
    }
    if (result.fabric.empty() && weft_side) result.fabric = weft_side->fabric();
    if (result.fabric.empty() && native_side) result.fabric = native_side->fabric();
    if (!result.weft_problem.empty() || (native && !result.native_problem.empty())) break;
  }
  result.probes.push_back(probe_cores(plan.cores));

  result.weft = weft_tally.figures();
  result.native = native_tally.figures();
  fill_comparisons(result);
  return result;
}

}  // namespace perf
