// Which bare baseline stands beside which provider.
#pragma once

#include <optional>
#include <string>

#include "role.hpp"

namespace perf {

struct Baseline {
  std::string provider;  ///< The provider it stands beside.
  Contender contender;
};

/// A baseline joins by one of these at namespace scope in its own file; which files are built is the build's
/// decision (a machine without a fabric's headers simply has one baseline fewer). Link those files as
/// objects: a static library would lose them.
class BaselineRegistration {
 public:
  explicit BaselineRegistration(Baseline baseline);
};

/// The baseline for a provider; empty when there is none. Decorators and what lies beneath are looked
/// through: "trace+tcp" and "tcp:eth0" find the one of "tcp", unless there is one for the exact name.
[[nodiscard]] std::optional<Contender> find_baseline(const std::string& provider);

}  // namespace perf
