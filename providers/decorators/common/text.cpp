#include "decorators/common/text.hpp"

#include <initializer_list>
#include <string_view>
#include <utility>

namespace weft::decorator {
namespace {

template <class Set>
std::string joined(Set set, std::initializer_list<std::pair<Set, std::string_view>> names) {
  std::string text;
  for (const auto& [one, name] : names) {
    if (!has(set, one)) continue;
    if (!text.empty()) text += '|';
    text += name;
  }
  return text.empty() ? "none" : text;
}

}  // namespace

std::string to_text(Flags flags) {
  return joined(flags, {{Flags::unsignalled, "unsignalled"},
                        {Flags::inline_data, "inline"},
                        {Flags::fence, "fence"},
                        {Flags::with_immediate, "immediate"}});
}

std::string to_text(Access access) {
  return joined(access, {{Access::local_write, "local_write"},
                         {Access::remote_read, "remote_read"},
                         {Access::remote_write, "remote_write"},
                         {Access::remote_atomic, "remote_atomic"}});
}

}  // namespace weft::decorator
