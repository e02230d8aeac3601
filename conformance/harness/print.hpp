// How weft's values look in the text of a failed check.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "weft/weft.hpp"

namespace weft {

void PrintTo(Status status, std::ostream* out);
void PrintTo(Operation operation, std::ostream* out);
void PrintTo(Polled::Reason reason, std::ostream* out);
void PrintTo(EndpointState state, std::ostream* out);
void PrintTo(const Completion& completion, std::ostream* out);

}  // namespace weft

namespace conformance {

// One line per completion; "(none)" when there is none.
[[nodiscard]] std::string list(const std::vector<weft::Completion>& completions);

}  // namespace conformance
