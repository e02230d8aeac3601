// weft-mutants [--all] [--list] [--show]: providers that are wrong on purpose, and whether the suite finds
// them. Without --all a few of them. GoogleTest's options work too: --gtest_filter=*.NAME. The last line says
// `N of N caught`.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "verdict.hpp"

namespace mutants {
namespace {

// One or two of each section, quick to run.
const std::set<std::string> few{
    "full-is-invalid",       "batches-backwards",    "immediate-in-wire-order",
    "contexts-of-32-bits",   "messages-overtake",    "completion-lost-now-and-then",
    "more-room-than-asked",  "truncates-silently",   "ends-twice",
    "moves-segments-inside", "lets-go-what-is-used", "writes-behind-the-array",
    "arms-what-is-there",    "marks-twice",          "not-up-is-not-connected",
    "one-key-for-all"};

std::map<std::string, Verdict>& verdicts() {
  static auto* const all = new std::map<std::string, Verdict>;
  return *all;
}

const char* to_text(Strength strength) {
  switch (strength) {
    case Strength::always:
      return "always";
    case Strength::rare:
      return "rare";
    case Strength::corner:
      return "corner";
  }
  return "";
}

const char* origin(const Mutant& mutant) { return mutant.from_contract ? " (from the contract)" : ""; }

class MutantTest : public testing::Test {
 public:
  MutantTest(const Mutant& mutant, const Tools& tools) : mutant_(mutant), tools_(tools) {}
  void TestBody() override {
    const Verdict verdict = judge(mutant_, tools_);
    verdicts()[mutant_.name] = verdict;
    EXPECT_TRUE(verdict.caught) << mutant_.name << " (" << mutant_.rule << "): " << verdict.why;
  }

 private:
  const Mutant& mutant_;
  const Tools& tools_;
};

int run(int argc, char** argv) {
  std::set<std::string> options;
  for (int i = 1; i < argc; ++i) options.insert(argv[i]);
  const bool all = options.contains("--all");
  if (options.contains("--list")) {
    for (const Mutant& mutant : all_mutants()) {
      std::cout << mutant.rule << "  " << to_text(mutant.strength) << "  " << mutant.name << origin(mutant)
                << '\n';
    }
    return EXIT_SUCCESS;
  }
  const std::filesystem::path here = std::filesystem::canonical("/proc/self/exe").parent_path();
  Tools tools;
  tools.suite = (here / "weft-conformance").string();
  tools.plugin = WEFT_MUTANTS_PLUGIN;
  tools.beneath = WEFT_MUTANTS_BENEATH;
  tools.folder =
      (std::filesystem::temp_directory_path() / ("weft-mutants-" + std::to_string(::getpid()))).string();
  tools.shows = options.contains("--show");
  std::filesystem::create_directories(tools.folder);
  for (const Mutant& mutant : all_mutants()) {
    if (!all && !few.contains(mutant.name)) continue;
    std::string name = mutant.name;
    std::replace(name.begin(), name.end(), '-', '_');  // a filter takes '-' for an exclusion
    testing::RegisterTest("Mutants", name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [&]() -> testing::Test* { return new MutantTest(mutant, tools); });
  }
  const int status = RUN_ALL_TESTS();
  std::size_t caught = 0;
  for (const Mutant& mutant : all_mutants()) {
    const auto verdict = verdicts().find(mutant.name);
    if (verdict == verdicts().end()) continue;
    if (verdict->second.caught) ++caught;
    std::cout << (verdict->second.caught ? "caught    " : "SURVIVED  ") << mutant.rule << "  "
              << to_text(mutant.strength) << "  " << mutant.name << origin(mutant) << "  "
              << (verdict->second.caught ? verdict->second.by : verdict->second.why) << '\n';
  }
  if (status == 0) std::filesystem::remove_all(tools.folder);
  std::cout << caught << " of " << verdicts().size() << " caught" << std::endl;
  return status;
}

}  // namespace
}  // namespace mutants

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  try {
    return mutants::run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "weft-mutants: " << error.what() << '\n';
    return EXIT_FAILURE;
  }
}
