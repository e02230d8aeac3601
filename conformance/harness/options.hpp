// The command line of weft-conformance.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace conformance {

enum class FabricClass : std::uint8_t;

struct Options {
  std::vector<std::string> providers;  // "tcp", "ofi:shm"; empty: everything that can run
  std::vector<std::string> plugins;
  std::vector<std::string> rules;  // empty: all
  bool safe = true;                // thread modes
  bool single = false;
  bool quick = false;
  bool long_run = false;
  bool list = false;
  bool in_process = false;
  std::optional<FabricClass> fabric_class;  // empty: as each fabric looks
  unsigned jobs = 1;
  std::uint64_t seed = 0;
  std::string json;
  std::string markdown;
  std::string junit;
};

// Takes what GoogleTest has left of the command line. Throws std::runtime_error for what makes no sense;
// returns false when help was asked for and given.
[[nodiscard]] bool parse_options(int argc, char** argv, Options& options);

}  // namespace conformance
