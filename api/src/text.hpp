// Small helpers for the texts of errors and log lines.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/attributes.hpp"
#include "weft/log.hpp"

namespace weft::core {

// The value as a user should see it: in double quotes, control characters and quotes escaped, cut after 200
// characters. For everything that comes from outside (options, variables, peers).
// An object, since for a function the compiler would also consider std::quoted.
struct Quote {
  [[nodiscard]] std::string operator()(std::string_view value) const;
};
inline constexpr Quote quoted{};

// The text with every control character replaced by an escape, so that it stays one line.
[[nodiscard]] std::string one_line(std::string_view text);

// `"written": failures`. Failures name the address that was tried; one that is just what was written is not
// said twice.
[[nodiscard]] std::string with_failures(std::string_view written, std::string_view failures);

// "a, b, c", or `if_empty`.
[[nodiscard]] std::string joined(std::span<const std::string> items, std::string_view separator = ", ",
                                 std::string_view if_empty = "none");

// ' (did you mean "verbs"?)' when one of the candidates is close to what was written, else empty.
[[nodiscard]] std::string suggestion(std::string_view written, std::span<const std::string> candidates);

// The text of an errno value, for instance "Permission denied".
[[nodiscard]] std::string system_text(int error_number);

// The pieces between separators; always at least one, empty ones included.
[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char separator);

[[nodiscard]] std::string_view to_text(ThreadMode mode) noexcept;    // "safe", "single"
[[nodiscard]] std::string_view to_text(ProgressMode mode) noexcept;  // "automatic", "when_called"
[[nodiscard]] std::string_view to_text(Trust trust) noexcept;        // "whoever reaches the port"
[[nodiscard]] std::string_view to_text(LogLevel level) noexcept;     // "warning"

}  // namespace weft::core
