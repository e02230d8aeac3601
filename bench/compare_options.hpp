// The command line of `weft-perf compare`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "workload.hpp"

namespace perf {

struct CompareOptions {
  double seconds = 60;                 ///< For the whole run.
  std::vector<std::string> providers;  ///< Empty: all that can run here.
  std::vector<Workload> workloads;
  bool against_itself = false;  ///< The bare side takes weft's place too.
  std::string json_file;        ///< Empty: none.
  std::string report_file;      ///< Empty: none.
};

/// Nothing when only help was asked for (it has been printed). Throws std::exception types with a sentence to
/// show for anything wrong.
[[nodiscard]] std::optional<CompareOptions> parse_compare_options(const std::vector<std::string>& arguments);

}  // namespace perf
