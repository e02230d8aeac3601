// What exists on this machine, for discovery, for automatic choice and for errors.
#pragma once

#include <string>
#include <vector>

#include "plugin_loader.hpp"
#include "weft/discovery.hpp"

namespace weft::core {

// Loads the plug-in and asks it. Never throws for one that cannot run.
[[nodiscard]] ProviderReport survey(const std::string& name);
// All that are found.
[[nodiscard]] std::vector<ProviderReport> survey_all();

// "can run", "can run: a, b", "cannot run: REASON", "decorator".
[[nodiscard]] std::string summary(const ProviderReport& report);

// Why no fabric of the provider can run, in one phrase.
[[nodiscard]] std::string reason_not_to_run(const ProviderReport& report);

}  // namespace weft::core
