// weft-mutants [--all] [--jobs N] [--list] [--show]: providers that are wrong on purpose, and whether the
// suite finds them. Without --all a few of them. Most of their time is waiting, so several can be run side by
// side. GoogleTest's options work too: --gtest_filter=*.NAME. The last line says `N of N caught`.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "harness/ahead.hpp"
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

// The name of a mutant as GoogleTest's filter takes it, for which '-' means exclusion.
std::string test_name(const Mutant& mutant) {
  std::string name = mutant.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

// The mutants that GoogleTest's filter has left, judged side by side and asked for in order.
class SideBySide {
 public:
  // Once the filter is known: at the first test.
  SideBySide(const Tools& tools, unsigned at_once) {
    std::set<std::string> wanted;
    const testing::TestSuite& suite = *testing::UnitTest::GetInstance()->current_test_suite();
    for (int i = 0; i < suite.total_test_count(); ++i) {
      if (suite.GetTestInfo(i)->should_run()) wanted.insert(suite.GetTestInfo(i)->name());
    }
    for (const Mutant& mutant : all_mutants()) {
      if (wanted.contains(test_name(mutant))) mutants_.push_back(&mutant);
    }
    verdicts_.resize(mutants_.size());
    ahead_ = std::make_unique<conformance::Ahead>(mutants_.size(), at_once, [this, &tools](std::size_t i) {
      try {
        verdicts_[i] = judge(*mutants_[i], tools);
      } catch (const std::exception& error) {
        verdicts_[i].why = std::string("the runner could not run it: ") + error.what();
      }
    });
  }

  Verdict verdict_on(const Mutant& mutant) {
    const auto index =
        static_cast<std::size_t>(std::find(mutants_.begin(), mutants_.end(), &mutant) - mutants_.begin());
    ahead_->wait_for(index);
    return verdicts_[index];
  }

 private:
  std::vector<const Mutant*> mutants_;
  std::vector<Verdict> verdicts_;
  std::unique_ptr<conformance::Ahead> ahead_;  // ends first
};

// What all tests share.
struct Workshop {
  Tools tools;
  unsigned at_once = 1;
  std::unique_ptr<SideBySide> side_by_side;
};

class MutantTest : public testing::Test {
 public:
  MutantTest(const Mutant& mutant, Workshop& workshop) : mutant_(mutant), workshop_(workshop) {}
  void TestBody() override {
    if (!workshop_.side_by_side)
      workshop_.side_by_side = std::make_unique<SideBySide>(workshop_.tools, workshop_.at_once);
    const Verdict verdict = workshop_.side_by_side->verdict_on(mutant_);
    verdicts()[mutant_.name] = verdict;
    EXPECT_TRUE(verdict.caught) << mutant_.name << " (" << mutant_.rule << "): " << verdict.why;
  }

 private:
  const Mutant& mutant_;
  Workshop& workshop_;
};

// From `--jobs N` or `--jobs=N`; 1 when it is not there.
unsigned jobs_of(const std::vector<std::string>& arguments) {
  const std::string name = "--jobs";
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].starts_with(name)) continue;
    std::string value = arguments[i].substr(name.size());
    if (value.starts_with('=')) value.erase(0, 1);
    if (value.empty() && i + 1 < arguments.size()) value = arguments[i + 1];
    constexpr std::size_t most_digits = 2;
    const bool is_number = !value.empty() && value.size() <= most_digits &&
                           value.find_first_not_of("0123456789") == std::string::npos;
    const int jobs = is_number ? std::stoi(value) : 0;
    if (jobs == 0) throw std::runtime_error("--jobs takes a number from 1 to 99, not '" + value + "'");
    return static_cast<unsigned>(jobs);
  }
  return 1;
}

int run(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const std::set<std::string> options(arguments.begin(), arguments.end());
  const bool all = options.contains("--all");
  if (options.contains("--list")) {
    for (const Mutant& mutant : all_mutants()) {
      std::cout << mutant.rule << "  " << to_text(mutant.strength) << "  " << mutant.name << origin(mutant)
                << '\n';
    }
    return EXIT_SUCCESS;
  }
  const std::filesystem::path here = std::filesystem::canonical("/proc/self/exe").parent_path();
  Workshop workshop;
  workshop.at_once = jobs_of(arguments);
  Tools& tools = workshop.tools;
  tools.suite = (here / "weft-conformance").string();
  tools.plugin = WEFT_MUTANTS_PLUGIN;
  tools.beneath = WEFT_MUTANTS_BENEATH;
  tools.folder =
      (std::filesystem::temp_directory_path() / ("weft-mutants-" + std::to_string(::getpid()))).string();
  tools.shows = options.contains("--show");
  std::filesystem::create_directories(tools.folder);
  for (const Mutant& mutant : all_mutants()) {
    if (!all && !few.contains(mutant.name)) continue;
    testing::RegisterTest("Mutants", test_name(mutant).c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [&]() -> testing::Test* { return new MutantTest(mutant, workshop); });
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
