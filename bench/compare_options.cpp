#include "compare_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <iostream>
#include <sstream>
#include <stdexcept>

namespace perf {
namespace {

namespace po = boost::program_options;

constexpr double default_seconds = 60;
constexpr double quick_seconds = 20;
constexpr double least_seconds = 1;
constexpr double most_seconds = 86'400;

// A plot by size needs some.
const std::vector<std::size_t> report_sizes = {8, 64, 512, 4096, 65'536, 1'048'576};

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> items;
  std::istringstream stream(list);
  for (std::string item; std::getline(stream, item, ',');) {
    if (!item.empty()) items.push_back(item);
  }
  return items;
}

std::string introduction() {
  return "Usage: weft-perf compare [options]\n\n"
         "Runs weft and the same work on the bare fabric (for tcp: plain non-blocking sockets) in turns on "
         "two\n"
         "processor cores of this machine, and prints both with the ratio between them. Nothing has to be "
         "started\n"
         "beforehand, nothing leaves the machine. Both sides spin, so let the machine do nothing else "
         "meanwhile.\n\n"
         "  weft-perf compare                             everything, about a minute\n"
         "  weft-perf compare --quick --json result.json  20 seconds, figures also into a file\n"
         "  weft-perf compare --report page.html --seconds 300   also plots by size, for a browser\n"
         "  weft-perf compare --operations latency --sizes 8,64,4k --providers tcp\n";
}

po::options_description options() {
  po::options_description description("Options");
  description.add_options()                                                             //
      ("help,h", "print this text")                                                     //
      ("quick", "take 20 seconds instead of 60; fewer ratios will be resolved")         //
      ("seconds", po::value<double>()->value_name("N"), "take about N seconds in all")  //
      ("providers", po::value<std::string>()->value_name("LIST"),
       "what to measure, separated by commas, each as WEFT_PROVIDER takes it (tcp, ofi:shm, strict+tcp); "
       "default: everything that can run here")  //
      ("operations", po::value<std::string>()->value_name("LIST"),
       fmt::format("rows to run, separated by commas: {}", fmt::join(operation_names(), ", ")).c_str())  //
      ("sizes", po::value<std::string>()->value_name("LIST"),
       fmt::format(
           "message sizes instead of each row's own, separated by commas (8,64,4k,1M); rates are measured up "
           "to {}, bandwidths from there on",
           size_text(rate_size_limit))
           .c_str())  //
      ("against-itself",
       "measure the bare fabric against itself: every ratio should be 1, what it is off by is the "
       "error of the method on this machine")  //
      ("json", po::value<std::string>()->value_name("FILE"),
       "also write all figures, with every pair, to FILE")  //
      ("report", po::value<std::string>()->value_name("FILE"),
       "also write one page for a browser to FILE (.html): the table, and plots by size; without --sizes it "
       "takes 8, 64, 512, 4k, 64k and 1M");
  return description;
}

double seconds_of(const po::variables_map& values) {
  if (values.count("seconds") == 0) return values.count("quick") != 0 ? quick_seconds : default_seconds;
  const auto seconds = values["seconds"].as<double>();
  if (!(seconds >= least_seconds && seconds <= most_seconds)) {
    throw std::invalid_argument(
        fmt::format("--seconds {} is out of range: {} to {}", seconds, least_seconds, most_seconds));
  }
  return seconds;
}

std::vector<std::string> list_of(const po::variables_map& values, const char* name) {
  if (values.count(name) == 0) return {};
  std::vector<std::string> items = split(values[name].as<std::string>());
  if (items.empty()) throw std::invalid_argument(fmt::format("--{} needs at least one name", name));
  return items;
}

}  // namespace

std::optional<CompareOptions> parse_compare_options(const std::vector<std::string>& arguments) {
  const po::options_description description = options();
  po::variables_map values;
  po::store(po::command_line_parser(arguments).options(description).positional({}).run(), values);
  po::notify(values);
  if (values.count("help") != 0) {
    std::cout << introduction() << "\n" << description;
    return std::nullopt;
  }
  CompareOptions result;
  result.seconds = seconds_of(values);
  result.against_itself = values.count("against-itself") != 0;
  result.providers = list_of(values, "providers");
  std::vector<std::size_t> sizes;
  for (const std::string& text : list_of(values, "sizes")) sizes.push_back(parse_size(text));
  if (values.count("report") != 0) {
    result.report_file = values["report"].as<std::string>();
    if (sizes.empty()) sizes = report_sizes;
  }
  result.workloads = select_workloads(list_of(values, "operations"), sizes);
  if (result.workloads.empty()) {
    throw std::invalid_argument(
        fmt::format("no row is left: rates are measured up to {}, bandwidths from there on; choose other "
                    "--sizes or --operations",
                    size_text(rate_size_limit)));
  }
  if (values.count("json") != 0) result.json_file = values["json"].as<std::string>();
  return result;
}

}  // namespace perf
