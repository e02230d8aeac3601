#include "weft/version.hpp"

#include <array>
#include <charconv>
#include <cstddef>

namespace weft {
namespace {

// Made from the constants of the header, so that there is one place to change.
struct VersionText {
  std::array<char, 40> text{};
  std::size_t length = 0;

  VersionText() noexcept {
    char* at = text.data();
    char* const end = text.data() + text.size();
    for (const int part : {version_major, version_minor, version_patch}) {
      if (at != text.data()) *at++ = '.';
      at = std::to_chars(at, end, part).ptr;
    }
    length = static_cast<std::size_t>(at - text.data());
  }
};

}  // namespace

std::string_view version() noexcept {
  static const VersionText made;
  return {made.text.data(), made.length};
}

}  // namespace weft
