// The same results for programs.
#pragma once

#include <string>
#include <vector>

#include "contest.hpp"
#include "machine.hpp"

namespace perf {

struct ReportHost {
  Machine machine;
  Cores cores;
  double seconds = 0;  ///< Asked for, for the whole run.
};

/// {"host":{...},"results":[...]}, one result per row and metric; a figure that could not be measured is
/// null.
[[nodiscard]] std::string json_report(const ReportHost& host, const std::vector<RowResult>& rows);

/// Throws std::runtime_error naming the file when it cannot be written.
void write_json_report(const std::string& file, const ReportHost& host, const std::vector<RowResult>& rows);

}  // namespace perf
