// What weft-info finds out, before anybody tells it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "machine.hpp"
#include "weft/weft.hpp"

namespace info {

// A fabric of a provider, on all its devices, opened.
struct OpenedFabric {
  std::string selector;  // as in WEFT_PROVIDER
  std::optional<weft::Attributes> attributes;
  std::string problem;  // why it could not be opened although its provider says it can run
  std::vector<weft::ThreadMode> thread_modes;
  std::vector<weft::ProgressMode> progress_modes;
};

struct Provider {
  weft::ProviderReport report;
  std::vector<OpenedFabric> opened;  // those that can run
  std::string advice;                // what to do about a provider that could not be loaded
};

// What a program gets that leaves the choice to the environment as it is now.
struct Choice {
  std::optional<weft::Attributes> attributes;
  std::string problem;
};

struct Findings {
  std::string version;
  std::vector<std::string> plugin_folders;
  Choice choice;
  std::vector<Provider> providers;
  std::vector<std::string> missing;  // providers that come in packages of their own and are not here
  Machine machine;
  std::vector<weft::VariableReport> variables;
  std::vector<std::string> warnings;  // that weft logged meanwhile
};

// Asks weft and the machine. Slow: devices are opened.
[[nodiscard]] Findings look_around();

}  // namespace info
