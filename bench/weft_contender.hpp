// weft as a contender: the workloads written against the public API.
#pragma once

#include <string>
#include <vector>

#include "role.hpp"

namespace perf {

/// `provider` as WEFT_PROVIDER takes it. Contexts are opened in the processes that use them, not here.
[[nodiscard]] Contender weft_contender(const std::string& provider);

/// The names of everything that can run on this machine, by priority. Asked in a child process, because
/// opening devices and forking afterwards do not go together on every fabric.
[[nodiscard]] std::vector<std::string> usable_providers();

}  // namespace perf
