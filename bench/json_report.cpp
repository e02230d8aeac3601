#include "json_report.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <weft/version.hpp>

namespace perf {
namespace {

using Json = nlohmann::ordered_json;

Json number_or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json host_json(const ReportHost& host, const std::vector<RowResult>& rows) {
  std::vector<double> probes;
  for (const RowResult& row : rows) probes.insert(probes.end(), row.probes.begin(), row.probes.end());
  const Machine& machine = host.machine;
  return {{"processor", machine.processor},
          {"processors", machine.processors},
          {"kernel", machine.kernel},
          {"compiler", machine.compiler},
          {"build", machine.build},
          {"weft_version", weft::version()},
          {"time", machine.time},
          {"load_before", machine.load},
          {"client_core", host.cores.client},
          {"server_core", host.cores.server},
          {"seconds", host.seconds},
          {"state", state_text(probes)},
          {"shared_memory_half_round_trip_us", {{"median", median(probes)}, {"all", probes}}}};
}

Json runs_json(const std::vector<AbbaPair>& pairs) {
  Json runs = Json::array();
  for (const AbbaPair& pair : pairs) {
    runs.push_back(
        {{"weft", pair.weft}, {"native", pair.native}, {"ratio", pair.ratio()}, {"start", pair.start}});
  }
  return runs;
}

Json result_json(const RowResult& row, const Comparison& comparison) {
  const Workload& workload = row.workload;
  Json result = {{"provider", row.provider},
                 {"fabric", row.fabric},
                 {"operation", to_string(workload.operation)},
                 {"metric", comparison.metric},
                 {"size", workload.size},
                 {"depth", workload.depth},
                 {"batch", workload.batch},
                 {"endpoints", workload.endpoints},
                 {"weft", number_or_null(comparison.weft)},
                 {"native", number_or_null(comparison.native)},
                 {"ratio", nullptr},
                 {"spread", nullptr},
                 {"resolved", false},
                 {"level", to_string(workload.level)},
                 {"native_name", row.native_name},
                 {"native_kind", to_string(workload.native_kind)},
                 {"state", state_text(row.probes)}};
  if (comparison.ratio) {
    result["ratio"] = comparison.ratio->median;
    result["spread"] = {comparison.ratio->interval.low, comparison.ratio->interval.high};
    result["resolved"] = comparison.ratio->resolved;
  }
  if (!row.weft_problem.empty()) result["weft_problem"] = row.weft_problem;
  if (!row.native_problem.empty()) result["native_problem"] = row.native_problem;
  result["runs"] = runs_json(comparison.pairs);
  return result;
}

// A 99th percentile that nobody has enough samples for is no result.
bool worth_telling(const Comparison& comparison) {
  return comparison.metric != "latency_p99_us" || comparison.weft || comparison.native;
}

}  // namespace

std::string json_report(const ReportHost& host, const std::vector<RowResult>& rows) {
  Json results = Json::array();
  for (const RowResult& row : rows) {
    for (const Comparison& comparison : row.comparisons) {
      if (worth_telling(comparison)) results.push_back(result_json(row, comparison));
    }
  }
  const Json report = {{"host", host_json(host, rows)}, {"results", std::move(results)}};
  // Error texts may quote bytes that are no UTF-8; a report with a replacement in it beats no report.
  return report.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

void write_json_report(const std::string& file, const ReportHost& host, const std::vector<RowResult>& rows) {
  errno = 0;
  std::ofstream output(file);
  output << json_report(host, rows);
  output.close();
  if (!output) {
    throw std::runtime_error(
        fmt::format("cannot write '{}': {}", file, std::generic_category().message(errno)));
  }
}

}  // namespace perf
