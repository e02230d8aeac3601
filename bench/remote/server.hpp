// `weft-perf server`: does what clients ask for, one client after the other.
#pragma once

#include <string>
#include <vector>

namespace perf::remote {

/// Ends with --once only: 0 when that client's rows all ran, 1 when not. Throws for a wrong command line, and
/// when it cannot listen.
[[nodiscard]] int server(const std::vector<std::string>& arguments);

}  // namespace perf::remote
