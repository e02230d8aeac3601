// The findings, told: to a person as a diagnosis, to a program as JSON.
#pragma once

#include <string>

#include "findings.hpp"

namespace info {

// First what a program gets, then what stands in the way, then each provider, then the rest.
[[nodiscard]] std::string text_report(const Findings& findings, std::size_t width);

[[nodiscard]] std::string json_report(const Findings& findings);

}  // namespace info
