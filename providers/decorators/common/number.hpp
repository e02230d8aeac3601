// Numbers out of environment variables.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "weft/provider/provider.hpp"
#include "weft/status.hpp"

namespace weft::decorator {

// Throws Error(invalid_argument) when the variable holds something else.
[[nodiscard]] inline std::uint64_t number_of(const provider::Host& host, std::string_view variable,
                                             std::uint64_t unset) {
  const auto value = host.variable(variable);
  if (!value) return unset;
  std::uint64_t number = 0;
  const char* const end = value->data() + value->size();
  const auto [stop, error] = std::from_chars(value->data(), end, number);
  if (error != std::errc() || stop != end) {
    throw Error(Status::invalid_argument, "the environment variable " + std::string(variable) + " is \"" +
                                              *value + "\"; allowed: a whole number from 0 on, or unset");
  }
  return number;
}

}  // namespace weft::decorator
