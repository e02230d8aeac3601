// The table a person reads, a row at a time.
#pragma once

#include <string>

#include "contest.hpp"

namespace perf {

[[nodiscard]] std::string table_header();

/// The weft line, the bare line below it, and what went wrong if something did.
[[nodiscard]] std::string table_row(const RowResult& result);

/// Millions per second with three significant digits, over four orders of magnitude.
[[nodiscard]] std::string rate_text(double rate);

/// What the columns mean, to stand below the table.
[[nodiscard]] std::string table_legend();

}  // namespace perf
