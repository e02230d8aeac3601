#include "client.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <optional>
#include <stdexcept>

#include "options.hpp"
#include "result.hpp"
#include "session.hpp"

namespace perf::remote {
namespace {

// Minutes of measuring should not end with "cannot write".
void check_writable(const std::string& file) {
  if (file.empty() || file == "-") return;
  if (!std::ofstream(file, std::ios::app)) {
    throw std::runtime_error(fmt::format("cannot write '{}'; does its folder exist?", file));
  }
}

}  // namespace

int client(const std::vector<std::string>& arguments) {
  const std::optional<ClientOptions> options = parse_client_options(arguments);
  if (!options) return 0;
  check_writable(options->json_file);
  check_writable(options->csv_file);

  // Whoever reads the output by program gets nothing else there.
  const bool shows_table = options->json_file != "-" && options->csv_file != "-";
  const auto show = [&](const std::string& text) {
    if (shows_table) fmt::print("{}", text);
    std::fflush(stdout);
  };
  std::vector<Result> results;
  std::optional<Sides> sides;
  std::string problem;
  try {
    Session session(*options);
    sides = session.sides();
    show(heading(*sides, options->rows.front()));
    std::optional<Test> headed;
    for (const Row& row : options->rows) {
      const bool latency = row.test == Test::latency;
      if (!headed || (*headed == Test::latency) != latency) show(table_header(row.test));
      headed = row.test;
      problem = fmt::format("{} {} of {} bytes: ", to_string(row.kind), to_string(row.test), row.size);
      results.push_back(session.run(row));
      show(table_row(results.back()));
      if (options->histogram && latency) show(histogram_text(results.back().measured.latencies));
      problem.clear();
    }
  } catch (const std::exception& error) {
    problem += error.what();
  }
  if (sides && !options->json_file.empty()) write_file(options->json_file, json_text(*sides, results));
  if (sides && !options->csv_file.empty()) write_file(options->csv_file, csv_text(*sides, results));
  if (problem.empty()) return 0;
  fmt::print(stderr, "weft-perf client: {}\n", problem);
  return 1;
}

}  // namespace perf::remote
