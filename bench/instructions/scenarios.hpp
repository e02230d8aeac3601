// The calls whose cost is stated: what is posted or polled, alone or in batches.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "pair.hpp"
#include "step_counter.hpp"

namespace instructions {

struct Scenario {
  std::string_view name;
  unsigned operations = 1;  ///< What one call carries; its cost is divided by this.
  std::function<std::unique_ptr<Subject>(const PairPlan&)> make;
};

[[nodiscard]] std::span<const Scenario> scenarios();

/// The one of this name; throws std::out_of_range.
[[nodiscard]] const Scenario& scenario(std::string_view name);

}  // namespace instructions
