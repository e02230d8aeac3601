// How the functions of tests and peers are run: what they throw is noted, what they leave behind is found.
#pragma once

#include <functional>

#include "harness/test.hpp"

namespace conformance {

enum class Role : std::uint8_t { test, peer };

// Runs it and notes what it throws. A peer that is left alone by its test has nothing to add.
void run_noting_failures(Role role, const std::function<void()>& body);

// Runs it and compares descriptors and threads before and after.
void check_nothing_is_left_by(const std::function<void()>& body);

// The same as the main work of a process: with the canary, and with descriptors and threads counted before
// and after.
void run_as_process(Role role, const Test& test, const std::function<void()>& body);

}  // namespace conformance
