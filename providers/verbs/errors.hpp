// Failed verbs calls as errors that say what to do (MEM-6).
#pragma once

#include <cstdint>
#include <string>

#include "weft/status.hpp"

namespace weft::verbs {

[[nodiscard]] std::string text_of(int code);

// Throws Error: which call, on what, why. `advice` may be empty.
[[noreturn]] void fail_call(const std::string& what, int code, const std::string& advice = {});

// Registering `length` bytes failed with `code`: names the limit of locked memory, its value and the size
// when that is the cause.
[[noreturn]] void fail_registration(std::uint64_t length, int code);

}  // namespace weft::verbs
