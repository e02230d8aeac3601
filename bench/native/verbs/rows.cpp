#include "rows.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace weft::native {

double quantile(std::vector<double> values, double fraction) {
  const auto rank = static_cast<std::ptrdiff_t>(std::ceil(fraction * static_cast<double>(values.size())));
  const auto position = values.begin() + std::max<std::ptrdiff_t>(rank, 1) - 1;
  std::nth_element(values.begin(), position, values.end());
  return *position;
}

void Rows::add(const Work& work, const std::vector<Measured>& runs) {
  std::vector<double> first;
  std::vector<double> second;
  for (const Measured& run : runs) {
    const auto operations = static_cast<double>(work.operations);
    switch (work.kind) {
      case Kind::latency:
        first.push_back(quantile(run.latencies_us, 0.5));
        second.push_back(quantile(run.latencies_us, 0.99));
        break;
      case Kind::rate:
        first.push_back(operations / run.seconds / 1e6);
        break;
      case Kind::bandwidth:
        first.push_back(operations * static_cast<double>(work.size) / run.seconds / 1e6);
        break;
    }
  }
  switch (work.kind) {
    case Kind::latency:
      add_row(work, "latency_p50_us", first, runs.front());
      add_row(work, "latency_p99_us", second, runs.front());
      break;
    case Kind::rate:
      add_row(work, "rate_mps", first, runs.front());
      break;
    case Kind::bandwidth:
      add_row(work, "bandwidth_mbps", first, runs.front());
      break;
  }
}

void Rows::add_row(const Work& work, const char* metric, const std::vector<double>& values,
                   const Measured& counts) {
  const auto rounded = [](double value) { return std::round(value * 1e6) / 1e6; };
  nlohmann::ordered_json row;
  row["provider"] = "verbs";
  row["fabric"] = fabric_;
  row["operation"] = name_of(work.operation);
  row["metric"] = metric;
  row["size"] = work.size;
  row["depth"] = work.depth;
  row["batch"] = work.batch;
  row["native"] = rounded(quantile(values, 0.5));
  row["doorbells"] = counts.doorbells;
  row["signals"] = counts.signals;
  row["operations"] = work.operations;
  for (const double value : values) row["runs"].push_back(rounded(value));
  lines_.push_back(row.dump());
}

void Rows::write(std::ostream& out) const {
  out << "[";
  for (std::size_t index = 0; index < lines_.size(); ++index)
    out << (index == 0 ? "\n" : ",\n") << lines_[index];
  out << "\n]\n";
}

}  // namespace weft::native
