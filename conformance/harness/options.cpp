#include "harness/options.hpp"

#include <algorithm>
#include <boost/algorithm/string.hpp>
#include <boost/program_options.hpp>
#include <iostream>
#include <random>
#include <stdexcept>

#include "harness/rules.hpp"
#include "harness/test.hpp"

namespace conformance {

namespace {

// "ORD,CMP-1" means both; what means nothing is an error, lest a typing mistake passes as a run without
// failures.
void split_and_check_rules(std::vector<std::string>& rules) {
  std::vector<std::string> split;
  for (const std::string& given : rules) {
    std::vector<std::string> parts;
    boost::split(parts, given, boost::is_any_of(","));
    split.insert(split.end(), parts.begin(), parts.end());
  }
  for (const std::string& wanted : split) {
    const auto& known = contract_rules();
    if (std::none_of(known.begin(), known.end(), [&](const auto& rule) { return is_meant(rule, wanted); }))
      throw std::runtime_error(
          "--rule is '" + wanted +
          "', which is no rule (ORD-1) and no section (ORD) of the contract; --list names them");
  }
  rules = split;
}

}  // namespace

bool parse_options(int argc, char** argv, Options& options) {
  namespace po = boost::program_options;
  std::string threads;
  std::string budget;
  po::options_description description(
      "weft-conformance [options]: checks providers against the contract, rule by rule.\n"
      "Ends with a matrix; exit status 0 only when nothing failed and nothing was left out.\n"
      "GoogleTest's options (--gtest_filter and others) work too.\n\nOptions");
  auto add = description.add_options();
  add("help,h", "this text");
  add("provider", po::value(&options.providers)->composing()->value_name("NAME[:FABRIC]"),
      "a provider to check; may be given several times. Default: everything that can run here");
  add("plugin", po::value(&options.plugins)->composing()->value_name("PATH"),
      "a provider's shared object outside the usual folders; its folder is added to WEFT_PROVIDER_PATH");
  add("rule", po::value(&options.rules)->composing()->value_name("RULE"),
      "only this rule (ORD-1) or section (ORD), or several, separated by commas");
  add("threads", po::value(&threads)->default_value("safe")->value_name("safe|single|both"), "thread modes");
  add("quick", po::bool_switch(&options.quick), "the short form: every rule that has a test, in two minutes");
  add("long", po::bool_switch(&options.long_run), "also what takes minutes or much memory");
  add("budget", po::value(&budget)->value_name("native|shared-memory|emulated"),
      "how much a test may move: as on a fabric of that class. Default: as each fabric looks");
  add("seed", po::value(&options.seed)->value_name("NUMBER"),
      "replays a run; default: another one each time");
  add("list", po::bool_switch(&options.list), "lists the tests with their rules");
  add("jobs,j", po::value(&options.jobs)->default_value(1)->value_name("NUMBER"),
      "so many tests side by side; most of them wait most of the time");
  add("json", po::value(&options.json)->value_name("FILE"), "writes the results there");
  add("markdown", po::value(&options.markdown)->value_name("FILE"), "writes the matrix there, as a table");
  add("junit", po::value(&options.junit)->value_name("FILE"), "writes the results there as JUnit XML");
  add("in-process", po::bool_switch(&options.in_process),
      "runs tests in this process, for a debugger; a crash or a hang then ends the run");

  po::variables_map given;
  try {
    po::store(po::parse_command_line(argc, argv, description), given);
    po::notify(given);
  } catch (const po::error& error) {
    throw std::runtime_error(std::string(error.what()) + "; see --help");
  }
  if (given.contains("help")) {
    std::cout << description << '\n';
    return false;
  }
  if (threads != "safe" && threads != "single" && threads != "both") {
    throw std::runtime_error("--threads is '" + threads + "'; it can be safe, single or both");
  }
  if (budget == "native") options.fabric_class = FabricClass::native;
  if (budget == "shared-memory") options.fabric_class = FabricClass::shared_memory;
  if (budget == "emulated") options.fabric_class = FabricClass::emulated;
  if (given.contains("budget") && !options.fabric_class) {
    throw std::runtime_error("--budget is '" + budget + "'; it can be native, shared-memory or emulated");
  }
  if (options.jobs < 1 || options.jobs > 64) throw std::runtime_error("--jobs can be 1 to 64");
  if (options.quick && options.long_run) throw std::runtime_error("--quick and --long exclude each other");
  split_and_check_rules(options.rules);
  options.safe = threads != "single";
  options.single = threads != "safe";
  if (!given.contains("seed")) options.seed = std::random_device{}();
  return true;
}

}  // namespace conformance
