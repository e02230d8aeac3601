// What the figures were taken on, as far as a reader needs it to judge them.
#pragma once

#include <string>
#include <vector>

#include "process_pair.hpp"

namespace perf {

/// The first two cores this process may use. Throws std::runtime_error when there is only one: two spinning
/// processes on one core measure the scheduler.
[[nodiscard]] Cores choose_cores();

/// Half a round trip between the two cores through one cache line of shared memory, in microseconds: on a
/// virtual machine it tells whether the two currently share a cache. Takes a few milliseconds.
[[nodiscard]] double probe_cores(const Cores& cores);

/// Up to the first limit the cores are called near, up to the second far. Measured: 0.06 to 0.09 us when they
/// share a cache, 0.16 to 0.28 us when not; microseconds mean that another program was running on one of
/// them.
inline constexpr double near_limit = 0.13;
inline constexpr double far_limit = 1.0;

/// "near", "far", "near and far", with ", disturbed by other programs" where that is so.
[[nodiscard]] std::string state_text(const std::vector<double>& probes);

struct Machine {
  std::string processor;
  std::string kernel;
  std::string compiler;
  std::string build;
  std::string time;  ///< UTC, ISO 8601.
  unsigned processors = 0;
  double load = 0;  ///< Load average of the last minute before the start.
};

[[nodiscard]] Machine describe_machine();

}  // namespace perf
