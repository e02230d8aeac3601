#include "text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace weft::core {
namespace {

constexpr std::size_t longest_quote = 200;

bool is_control(char c) noexcept {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f;
}

void append_escaped(std::string& out, char c) {
  if (c == '\n') {
    out += "\\n";
  } else {
    out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
}

char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Levenshtein distance, where two letters in each other's places are one mistake and a difference of case
// only counts half (so everything counts double).
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last;
  std::vector<std::size_t> last(b.size() + 1);
  for (std::size_t i = 0; i < last.size(); ++i) last[i] = 2 * i;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::vector<std::size_t> row(b.size() + 1, 2 * i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      std::size_t change = 2;
      if (a[i - 1] == b[j - 1]) {
        change = 0;
      } else if (lower(a[i - 1]) == lower(b[j - 1])) {
        change = 1;
      }
      row[j] = std::min({last[j] + 2, row[j - 1] + 2, last[j - 1] + change});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 2);
    }
    before_last = std::move(last);
    last = std::move(row);
  }
  return last[b.size()];
}

}  // namespace

std::string Quote::operator()(std::string_view value) const {
  std::string out = "\"";
  for (const char c : value.substr(0, longest_quote)) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (is_control(c)) {
      append_escaped(out, c);
    } else {
      out += c;
    }
  }
  if (value.size() > longest_quote) out += "...";
  out += '"';
  return out;
}

std::string one_line(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (is_control(c)) {
      append_escaped(out, c);
    } else {
      out += c;
    }
  }
  return out;
}

std::string with_failures(std::string_view written, std::string_view failures) {
  const std::string again = std::string(written) + ": ";
  if (failures.starts_with(again)) failures.remove_prefix(again.size());
  return fmt::format("{}: {}", quoted(written), failures);
}

std::string joined(std::span<const std::string> items, std::string_view separator,
                   std::string_view if_empty) {
  if (items.empty()) return std::string(if_empty);
  return fmt::format("{}", fmt::join(items, separator));
}

std::string suggestion(std::string_view written, std::span<const std::string> candidates) {
  const std::string* best = nullptr;
  // About a third of the letters may be wrong, and letters may all be in the wrong case.
  std::size_t closest = written.size() * 2 / 3 + 1;
  if (written.size() > longest_quote) return {};
  for (const std::string& candidate : candidates) {
    std::size_t found = distance(written, candidate);
    if (written.size() == candidate.size() && found == written.size()) found = 0;  // "VERB" for "verb"
    if (found < closest || (found == closest && best == nullptr)) {
      closest = found;
      best = &candidate;
    }
  }
  return best == nullptr ? std::string() : fmt::format(" (did you mean {}?)", quoted(*best));
}

// Not by way of std::error_category: a virtual call is one that the undefined behaviour sanitizer checks with
// a pipe, and "too many open files" is said when there can be none.
std::string system_text(int error_number) {
  std::array<char, 128> text{};
  return strerror_r(error_number, text.data(), text.size());
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  while (true) {
    const std::size_t at = text.find(separator);
    pieces.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return pieces;
    text.remove_prefix(at + 1);
  }
}

std::string_view to_text(ThreadMode mode) noexcept { return mode == ThreadMode::single ? "single" : "safe"; }

std::string_view to_text(ProgressMode mode) noexcept {
  return mode == ProgressMode::when_called ? "when_called" : "automatic";
}

std::string_view to_text(Trust trust) noexcept {
  switch (trust) {
    case Trust::nobody:
      return "nobody";
    case Trust::connected_peers:
      return "connected peers";
    case Trust::same_user:
      return "same user";
    case Trust::whoever_reaches_the_port:
      return "whoever reaches the port";
  }
  return "unknown";
}

std::string_view to_text(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::trace:
      return "trace";
    case LogLevel::debug:
      return "debug";
    case LogLevel::info:
      return "info";
    case LogLevel::warning:
      return "warning";
    case LogLevel::error:
      return "error";
    case LogLevel::off:
      return "off";
  }
  return "unknown";
}

}  // namespace weft::core
