// libfabric's error codes as text and as weft's errors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weft::ofi {

[[nodiscard]] std::string text_of(std::int64_t code);

// Throws Error when `code` is negative: "what: text", and what to do.
void check(std::int64_t code, std::string_view what, std::string_view advice = {});

}  // namespace weft::ofi
