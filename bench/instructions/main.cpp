// weft-instructions: what a call costs in instructions, on any provider that runs here.
#include <fmt/format.h>

#include <boost/program_options.hpp>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "scenarios.hpp"

namespace {

namespace options = boost::program_options;
using instructions::StepCount;

struct Row {
  const instructions::Scenario* scenario;
  weft::ThreadMode threads;
  StepCount count;
};

const char* mode_name(weft::ThreadMode mode) { return mode == weft::ThreadMode::single ? "single" : "safe"; }

void print_table(const std::vector<Row>& rows) {
  fmt::print("{:<40} {:<7} {:>8} {:>8} {:>7} {:>7} {:>12}\n", "per operation", "threads", "weft", "all",
             "locked", "allocs", "system calls");
  for (const Row& row : rows) {
    const double per = row.scenario->operations;
    fmt::print("{:<40} {:<7} {:>8.1f} {:>8.1f} {:>7.2f} {:>7.2f} {:>12.3f}\n", row.scenario->name,
               mode_name(row.threads), static_cast<double>(row.count.weft) / per,
               static_cast<double>(row.count.all) / per, static_cast<double>(row.count.locked) / per,
               static_cast<double>(row.count.allocations) / per, row.count.system_call_count() / per);
  }
  fmt::print(
      "\nweft: instructions in libweft and the provider; all: with the C library and what lies beneath, the "
      "kernel apart.\nThe undisturbed one of several runs; a batch's figures are divided by its "
      "operations.\n");
}

// One line per instruction, for addr2line: which code the counts are made of.
void write_steps(const std::string& file, const std::vector<Row>& rows) {
  std::ofstream out(file);
  for (const Row& row : rows) {
    out << "# " << row.scenario->name << ", " << mode_name(row.threads) << '\n';
    for (const instructions::Step& step : row.count.steps)
      out << step.file << ' ' << fmt::format("{:#x}", step.offset) << '\n';
  }
  if (!out) throw std::runtime_error("cannot write " + file);
}

void print_json(const std::vector<Row>& rows) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    list.push_back({{"scenario", row.scenario->name},
                    {"operations", row.scenario->operations},
                    {"threads", mode_name(row.threads)},
                    {"weft", row.count.weft},
                    {"all", row.count.all},
                    {"locked", row.count.locked},
                    {"allocations", row.count.allocations},
                    {"system_calls", row.count.system_call_count()}});
  }
  std::cout << nlohmann::ordered_json{{"instructions", list}}.dump(2) << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int wrong_usage = 2;
  try {
    std::string provider;
    std::string only;
    std::string steps;
    int times = 8;
    options::options_description known("Counts the instructions of weft's calls by stepping through them");
    known.add_options()("help,h", "this text")("provider", options::value(&provider)->default_value("tcp"),
                                               "provider, as in WEFT_PROVIDER")(
        "only", options::value(&only), "just the scenarios whose name contains this")(
        "times", options::value(&times)->default_value(times),
        "runs of each, of which the undisturbed one counts")(
        "steps", options::value(&steps), "file for every instruction's object and offset, for addr2line")(
        "json", "JSON instead of a table");
    options::variables_map given;
    options::store(options::parse_command_line(argc, argv, known), given);
    options::notify(given);
    if (given.count("help") != 0) {
      std::cout << known;
      return 0;
    }
    std::vector<Row> rows;
    for (const instructions::Scenario& scenario : instructions::scenarios()) {
      if (scenario.name.find(only) == std::string_view::npos) continue;
      for (const weft::ThreadMode threads : {weft::ThreadMode::single, weft::ThreadMode::safe}) {
        const auto counts = instructions::count_steps(
            [&] {
              return scenario.make({provider, threads});
            },
            times);
        rows.push_back({&scenario, threads, instructions::undisturbed(counts)});
      }
    }
    if (!steps.empty()) write_steps(steps, rows);
    if (given.count("json") != 0) {
      print_json(rows);
    } else {
      print_table(rows);
    }
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "weft-instructions: {}\n", error.what());
    return wrong_usage;
  }
}
