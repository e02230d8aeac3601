// Runs the suite against one mutant and judges what came of it.
#pragma once

#include <string>
#include <vector>

#include "mutant.hpp"

namespace mutants {

struct Verdict {
  bool caught = false;
  std::string by;   // the test that caught it
  std::string why;  // why it counts as not caught
};

struct Tools {
  std::string suite;    // weft-conformance
  std::string plugin;   // the mutants' plug-in
  std::string beneath;  // the library for mutants beneath the core
  std::string folder;   // for files
  bool shows = false;   // the suite's output goes to the terminal
};

// Caught: it struck; a test of its rule failed by a check, neither by a crash nor by a hang, and says what it
// must; and the bystanders passed. May be called from several threads at once.
[[nodiscard]] Verdict judge(const Mutant& mutant, const Tools& tools);

}  // namespace mutants
