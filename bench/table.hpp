// The table a person reads, a row at a time.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "contest.hpp"

namespace perf {

[[nodiscard]] std::string table_header();

/// The weft line, the bare line below it, and what went wrong if something did.
[[nodiscard]] std::string table_row(const RowResult& result);

/// Two decimals, four below 0.1 us; `none` when there is no figure.
[[nodiscard]] std::string latency_text(const std::optional<double>& microseconds, std::string_view none);

/// Millions per second with three significant digits, over four orders of magnitude.
[[nodiscard]] std::string rate_text(double rate);

/// What the columns mean, to stand below the table.
[[nodiscard]] std::string table_legend();

}  // namespace perf
