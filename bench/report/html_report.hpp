// The figures of `weft-perf compare` as one page for a browser: table and plots, with nothing outside it.
#pragma once

#include <string>
#include <vector>

#include "../contest.hpp"
#include "../json_report.hpp"

namespace perf {

[[nodiscard]] std::string html_report(const ReportHost& host, const std::vector<RowResult>& rows);

/// Throws std::runtime_error naming the file when it cannot be written.
void write_html_report(const std::string& file, const ReportHost& host, const std::vector<RowResult>& rows);

}  // namespace perf
