// Hands the tests to GoogleTest, runs each in a process of its own, and watches over it.
#pragma once

#include <vector>

#include "harness/discovery.hpp"
#include "harness/options.hpp"
#include "harness/results.hpp"

namespace conformance {

// Runs one test in a process of its own; `findings` gets what it found and how the process ended.
void run_isolated(const Test& test, Findings& findings);

// Registers every selected test for every setting. `results` must live until the end.
void register_tests(const Options& options, const std::vector<Found>& found, Results& results);
// Forgets what GoogleTest's own filter left out: the user asked for that.
void drop_filtered(Results& results);

}  // namespace conformance
