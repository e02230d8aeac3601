// Opening one named choice: its provider, then its decorators around it.
#pragma once

#include <memory>
#include <string>

#include "selection.hpp"
#include "weft/provider/context.hpp"
#include "weft/provider/provider.hpp"

namespace weft::core {

struct OpenedChoice {
  std::unique_ptr<provider::Context> context;
  std::string name;     // "decorator+a"
  std::string version;  // of the innermost
};

// `request` without `beneath`, which comes from the choice. Throws Error: not_found when there is no such
// provider, unavailable when it cannot be loaded, invalid_argument when a decorator stands where a provider
// belongs or the reverse, and what the provider itself throws.
[[nodiscard]] OpenedChoice open_choice(const Choice& choice, const provider::OpenRequest& request);

}  // namespace weft::core
