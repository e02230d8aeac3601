// weft-conformance: checks providers against the contract (api/contract.md). See --help.
#include <gtest/gtest.h>

#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "harness/clock.hpp"
#include "harness/discovery.hpp"
#include "harness/fork_server.hpp"
#include "harness/options.hpp"
#include "harness/results.hpp"
#include "harness/rules.hpp"
#include "harness/runner.hpp"

namespace conformance {
namespace {

void list_tests() {
  for (const std::string& rule : contract_rules()) {
    for (const TestCase& test : all_tests()) {
      if (test.rule != rule) continue;
      const char* cost = test.traits.cost == Cost::quick  ? "quick"
                         : test.traits.cost == Cost::full ? "full"
                                                          : "long";
      std::cout << rule << "  " << cost << "  " << test.name << '\n';
    }
  }
}

// Before the fork server starts, so that every process sees it.
void add_plugin_folders(const Options& options) {
  if (options.plugins.empty()) return;
  const char* before = std::getenv("WEFT_PROVIDER_PATH");
  std::string path = before == nullptr ? "" : before;
  for (const std::string& plugin : options.plugins) {
    if (!std::filesystem::exists(plugin))
      throw std::runtime_error("--plugin: '" + plugin + "' does not exist");
    path += (path.empty() ? "" : ":") + std::filesystem::absolute(plugin).parent_path().string();
  }
  setenv("WEFT_PROVIDER_PATH", path.c_str(), 1);
}

// GoogleTest writes the JUnit file, and must be told before it looks at the command line.
void translate_junit(std::vector<std::string>& arguments) {
  const std::string option = "--junit";
  for (auto at = arguments.begin(); at != arguments.end(); ++at) {
    if (at->starts_with(option + '=')) {
      *at = "--gtest_output=xml:" + at->substr(option.size() + 1);
    } else if (*at == option && std::next(at) != arguments.end()) {
      *at = "--gtest_output=xml:" + *std::next(at);
      arguments.erase(std::next(at));
    }
  }
}

int run(int argc, char** argv) {
  Options options;
  if (!parse_options(argc, argv, options)) return EXIT_SUCCESS;
  if (options.list) {
    list_tests();
    return EXIT_SUCCESS;
  }
  add_plugin_folders(options);
  start_fork_server();
  start_canary();

  Results results;
  const std::vector<Found> found = discover(options);
  register_tests(options, found, results);
  if (testing::GTEST_FLAG(list_tests)) return RUN_ALL_TESTS();
  if (found.empty()) std::cerr << "weft-conformance: no provider can run here; weft-info tells why\n";
  for (const Found& one : found) {
    if (!one.usable)
      std::cerr << "weft-conformance: " << one.selector() << " cannot run: " << one.reason << '\n';
  }
  std::cout << "Seed " << options.seed << " (again with --seed " << options.seed << ")\n";

  const int status = RUN_ALL_TESTS();
  drop_filtered(results);
  results.compare_checks();
  results.print_matrix();
  if (!options.json.empty()) results.write_json(options.json);
  if (!options.markdown.empty()) results.write_markdown(options.markdown);
  return status == 0 && results.good() ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace conformance

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv, argv + argc);
  conformance::translate_junit(arguments);
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  int count = static_cast<int>(pointers.size());
  pointers.push_back(nullptr);
  testing::InitGoogleTest(&count, pointers.data());
  try {
    return conformance::run(count, pointers.data());
  } catch (const std::exception& error) {
    std::cerr << "weft-conformance: " << error.what() << '\n';
    return EXIT_FAILURE;
  }
}
