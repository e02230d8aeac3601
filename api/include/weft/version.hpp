// The library's own version, and the version a program runs with.
#pragma once

#include <string_view>

#include "weft/export.hpp"

namespace weft {

inline constexpr int version_major = 0;
inline constexpr int version_minor = 1;
inline constexpr int version_patch = 0;

// The version text of the loaded library ("0.1.0"); compare with the constants above to find a mismatch.
[[nodiscard]] WEFT_API std::string_view version() noexcept;

}  // namespace weft
