#include "duration.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace weft::core {

std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) noexcept {
  constexpr double longest = 1e9;  // milliseconds
  double unit = 1000.0;
  if (text.ends_with("ms")) {
    unit = 1.0;
    text.remove_suffix(2);
  } else if (text.ends_with('s')) {
    text.remove_suffix(1);
  }
  // from_chars also takes signs, exponents, "inf" and "nan"; a time has digits and a point.
  const auto is_plain = [](char c) { return (c >= '0' && c <= '9') || c == '.'; };
  if (text.empty() || !std::all_of(text.begin(), text.end(), is_plain)) return {};
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (error != std::errc() || stopped != end || number * unit > longest) return {};
  return std::chrono::milliseconds(std::llround(number * unit));
}

}  // namespace weft::core
