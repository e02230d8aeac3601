// What the small programs beside weft-perf have in common.
#pragma once

#include <fmt/core.h>

#include <cstdio>
#include <exception>

namespace perf {

/// The body of `main`: reads the options, which have a member `help`, and does the work unless only help was
/// asked for. What either throws is printed, and the program ends with status 2.
template <class ReadOptions, class Work>
[[nodiscard]] int run_program(const char* name, int count, char** arguments, const ReadOptions& read_options,
                              const Work& work) {
  try {
    const auto options = read_options(count, arguments);
    return options.help ? 0 : work(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", name, error.what());
    return 2;
  }
}

}  // namespace perf
