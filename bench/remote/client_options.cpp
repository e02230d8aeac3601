#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <iostream>
#include <sstream>
#include <stdexcept>

#include "../workload.hpp"
#include "options.hpp"

namespace perf::remote {
namespace {

namespace po = boost::program_options;

constexpr double default_seconds = 1;
constexpr double most_seconds = 86'400;
constexpr std::uint64_t most_operations = std::uint64_t{1} << 40;

// What a row has where the command line says nothing.
struct Defaults {
  std::uint64_t size;
  std::uint32_t depth;
  std::uint32_t batch;
};

Defaults defaults_of(Test test) {
  if (test == Test::latency) return {64, 1, 1};
  if (test == Test::bandwidth) return {64 * 1024, 16, 1};
  return {64, 512, 64};
}

std::string introduction() {
  return "Usage: weft-perf client HOST[:PORT] [options]\n\n"
         "Measures between this machine and the one on which `weft-perf server` runs. The server needs no "
         "options:\nit is told everything.\n\n"
         "  weft-perf client 10.0.0.1                               sends: latency, bandwidth and rate\n"
         "  weft-perf client 10.0.0.1 -o all --test latency -s 8:64k   every operation by size\n"
         "  weft-perf client 10.0.0.1 -o write --test bandwidth -s 1M -t 32 -D 10 --bidirectional\n"
         "  weft-perf client 10.0.0.1 --test latency --histogram --events\n\n"
         "A latency is half of the way there and back for send, send_with_immediate and "
         "write_with_immediate, "
         "and\nthe time until it is complete for the rest. flush is measured behind a write of that size.\n";
}

std::vector<std::string_view> names_of_kinds() {
  std::vector<std::string_view> names;
  for (const Kind kind : all_kinds()) names.push_back(to_string(kind));
  return names;
}

po::options_description options() {
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  po::options_description what("What is measured");
  what.add_options()  //
      ("operation,o", text("LIST")->default_value("send"),
       fmt::format("{}; or all", fmt::join(names_of_kinds(), ", ")).c_str())               //
      ("test,T", text("LIST"), "latency, bandwidth, rate; default: all that is possible")  //
      ("size,s", text("SIZES"),
       "bytes of an operation: 64, or 64,4k, or 8:64k for every doubling; default: 64, for bandwidth 64k; "
       "atomics "
       "have 8")                                                                                           //
      ("iterations,n", text("N"), "operations of each row")                                                //
      ("duration,D", po::value<double>()->value_name("SECONDS"), "instead: time of each row; default: 1")  //
      ("depth,t", text("N"),
       "operations outstanding on an endpoint; default: 16 for bandwidth, 512 for rate")            //
      ("batch,b", text("N"), "operations in one post call; default: 1 for bandwidth, 64 for rate")  //
      ("endpoints", text("N")->default_value("1"), "connections, which take turns")                 //
      ("bidirectional", "the server does the same at the same time; not for latency")               //
      ("warm-up,w", text("N"), "operations before the clock runs; default: up to 1000");
  po::options_description how("How");
  how.add_options()                                                                                //
      ("events,e", "sleep until something completes, instead of polling")                          //
      ("check,c", "make every byte on the one side and look at it on the other; costs time")       //
      ("threads", text("MODE")->default_value("safe"), "thread mode of both sides: safe, single")  //
      ("provider", text("NAME"), "as in WEFT_PROVIDER; the server must run the same")              //
      ("device", text("NAME"), "as in WEFT_DEVICE")                                                //
      ("memory", text("MiB")->default_value("1024"), "how much of it a row may use");
  po::options_description output("What comes of it");
  output.add_options()                                                                   //
      ("histogram,H", "also how the latencies are spread")                               //
      ("json", text("FILE"), "all figures to FILE, '-': only that, to standard output")  //
      ("csv", text("FILE"), "the same as a table with commas")                           //
      ("help,h", "print this text");
  po::options_description all;
  all.add(what).add(how).add(output);
  return all;
}

class Values {
 public:
  explicit Values(const po::variables_map& map) : map_(map) {}
  [[nodiscard]] bool has(const char* name) const { return map_.count(name) != 0; }
  [[nodiscard]] std::string text(const char* name) const {
    return has(name) ? map_[name].as<std::string>() : "";
  }
  [[nodiscard]] std::uint64_t number(const char* name, std::uint64_t least, std::uint64_t most) const {
    return parse_number(text(name), fmt::format("--{}", name), least, most);
  }
  [[nodiscard]] std::uint32_t number_or(const char* name, std::uint32_t standard, std::uint64_t most) const {
    return has(name) ? static_cast<std::uint32_t>(number(name, 1, most)) : standard;
  }
  template <typename Item, typename Parse>
  [[nodiscard]] std::vector<Item> list(const char* name, Parse parse) const {
    std::vector<Item> items;
    std::istringstream stream(text(name));
    for (std::string one; std::getline(stream, one, ',');) items.push_back(parse(one));
    if (items.empty()) throw std::invalid_argument(fmt::format("--{} needs at least one name", name));
    return items;
  }
  [[nodiscard]] double seconds() const {
    const auto seconds = map_["duration"].as<double>();
    if (!(seconds > 0 && seconds <= most_seconds)) {
      throw std::invalid_argument(
          fmt::format("-D {} is not a time from above 0 to {} s", seconds, most_seconds));
    }
    return seconds;
  }

 private:
  const po::variables_map& map_;
};

std::vector<Row> rows_of(const Values& values, std::uint64_t memory_limit) {
  const bool both_ways = values.has("bidirectional");
  const std::vector<Kind> kinds =
      values.text("operation") == "all" ? all_kinds() : values.list<Kind>("operation", parse_kind);
  std::vector<Test> tests = all_tests();
  if (both_ways) tests = {Test::bandwidth, Test::rate};
  if (values.has("test")) tests = values.list<Test>("test", parse_test);
  std::vector<Row> rows;
  for (const Test test : tests) {
    const Defaults standard = defaults_of(test);
    for (const Kind kind : kinds) {
      std::vector<std::uint64_t> sizes{standard.size};
      if (values.has("size")) sizes = parse_sizes(values.text("size"));
      if (is_atomic(kind)) sizes = {8};
      for (const std::uint64_t size : sizes) {
        Row row{.kind = kind, .test = test, .size = size, .bidirectional = both_ways};
        row.depth = test == Test::latency ? 1 : values.number_or("depth", standard.depth, largest_depth);
        row.batch = test == Test::latency
                        ? 1
                        : values.number_or("batch", std::min(standard.batch, row.depth), largest_depth);
        row.endpoints = values.number_or("endpoints", 1, most_endpoints);
        row.events = values.has("events");
        row.check = values.has("check");
        require_possible(row, memory_limit);
        rows.push_back(row);
      }
    }
  }
  return rows;
}

weft::ThreadMode threads_of(const std::string& text) {
  if (text == "safe") return weft::ThreadMode::safe;
  if (text == "single") return weft::ThreadMode::single;
  throw std::invalid_argument(fmt::format("--threads '{}' is neither safe nor single", text));
}

}  // namespace

std::optional<ClientOptions> parse_client_options(const std::vector<std::string>& arguments) {
  const po::options_description visible = options();
  po::options_description all = visible;
  all.add_options()("server", po::value<std::string>());
  po::variables_map map;
  po::store(po::command_line_parser(arguments)
                .options(all)
                .positional(po::positional_options_description().add("server", 1))
                .run(),
            map);
  po::notify(map);
  const Values values(map);
  if (values.has("help")) {
    std::cout << introduction() << visible;
    return std::nullopt;
  }
  if (!values.has("server")) {
    throw std::invalid_argument("where is the server? weft-perf client HOST[:PORT]; --help tells more");
  }
  if (values.has("iterations") && values.has("duration")) {
    throw std::invalid_argument(
        "-n and -D exclude each other: a row is over after so many operations or that time");
  }
  ClientOptions result;
  result.server = values.text("server");
  if (!has_port(result.server)) result.server += std::string(":") + default_port;
  result.provider = values.text("provider");
  result.device = values.text("device");
  result.threads = threads_of(values.text("threads"));
  result.memory_limit = values.number("memory", 1, std::uint64_t{1} << 24) << 20;
  result.rows = rows_of(values, result.memory_limit);
  if (values.has("iterations")) {
    result.amount.operations = values.number("iterations", 1, most_operations);
  } else {
    result.amount.seconds = values.has("duration") ? values.seconds() : default_seconds;
  }
  if (values.has("warm-up")) result.warm_up = values.number("warm-up", 0, most_operations);
  result.histogram = values.has("histogram");
  result.json_file = values.text("json");
  result.csv_file = values.text("csv");
  if (result.json_file == "-" && result.csv_file == "-") {
    throw std::invalid_argument("--json and --csv cannot both go to standard output");
  }
  return result;
}

}  // namespace perf::remote
