// The rules of the contract, in its order.
#pragma once

#include <string>
#include <vector>

namespace conformance {

[[nodiscard]] const std::vector<std::string>& contract_rules();

// Whether `rule` is meant by `wanted`: itself ("ORD-1") or its section ("ORD").
[[nodiscard]] bool is_meant(const std::string& rule, const std::string& wanted);

}  // namespace conformance
