// `weft-perf client HOST:PORT`: the side that asks, holds the clock and shows the figures.
#pragma once

#include <string>
#include <vector>

namespace perf::remote {

/// The exit status: 0 when every row ran, 1 when not. Throws for a wrong command line.
[[nodiscard]] int client(const std::vector<std::string>& arguments);

}  // namespace perf::remote
