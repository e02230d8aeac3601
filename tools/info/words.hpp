// The library's values in words, and text broken into lines.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "weft/attributes.hpp"

namespace info {

[[nodiscard]] const char* word(weft::Trust trust);  // as in the contract (SEC-3)
[[nodiscard]] const char* word(weft::ThreadMode mode);
[[nodiscard]] const char* word(weft::ProgressMode mode);
[[nodiscard]] const char* word(weft::AtomicScope scope);
[[nodiscard]] const char* meaning(weft::AtomicScope scope);

// Lines of at most `width` characters, each with `indent` in front; the first has `head` there instead.
[[nodiscard]] std::string wrapped(std::string_view text, std::string_view head, std::size_t indent,
                                  std::size_t width);

template <class Mode>
[[nodiscard]] std::string words(const std::vector<Mode>& modes) {
  std::string text;
  for (const Mode mode : modes) text += (text.empty() ? "" : ", ") + std::string(word(mode));
  return text;
}

}  // namespace info
