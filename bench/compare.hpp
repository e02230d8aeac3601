// `weft-perf compare`: weft beside the bare fabric, on this machine.
#pragma once

#include <string>
#include <vector>

namespace perf {

/// The exit status: 0 when every row ran, 1 when one could not, 2 for a wrong command line (which throws).
[[nodiscard]] int compare(const std::vector<std::string>& arguments);

}  // namespace perf
