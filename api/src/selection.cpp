#include "selection.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "text.hpp"
#include "weft/status.hpp"

namespace weft::core {
namespace {

struct Reader {
  std::string source;

  [[noreturn]] void refuse(std::string_view why) const {
    throw Error(Status::invalid_argument,
                fmt::format("{} is no choice of providers: {}; write a name (a), a list in order of "
                            "preference (a,b), what lies beneath after a colon (a:x), decorators in front "
                            "(d+a), or ^a,b to leave names out of the automatic choice",
                            source, why));
  }

  [[nodiscard]] ProviderName read_name(std::string_view text) const {
    const std::size_t colon = text.find(':');
    ProviderName result{std::string(text.substr(0, colon)), {}};
    if (result.name.empty()) refuse("a name is missing");
    if (colon != std::string_view::npos) {
      result.beneath = text.substr(colon + 1);
      if (result.beneath.empty()) refuse(fmt::format("nothing follows the colon of {}", quoted(text)));
    }
    return result;
  }

  [[nodiscard]] Choice read_choice(std::string_view text) const {
    Choice result;
    for (const std::string_view part : split(text, '+')) result.decorators.push_back(read_name(part));
    result.base = std::move(result.decorators.back());
    result.decorators.pop_back();
    return result;
  }
};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

std::string Choice::to_string() const {
  std::string result;
  for (const ProviderName& decorator : decorators) result += decorator.to_string() + '+';
  return result + base.to_string();
}

bool Selection::excludes(std::string_view name) const noexcept {
  return std::any_of(excluded.begin(), excluded.end(),
                     [&](const ProviderName& one) { return one.name == name && one.beneath.empty(); });
}

bool Selection::excludes(std::string_view name, std::string_view fabric) const noexcept {
  return std::any_of(excluded.begin(), excluded.end(), [&](const ProviderName& one) {
    return one.name == name && (one.beneath.empty() || one.beneath == fabric);
  });
}

Selection parse_selection(std::string_view text, std::string_view where) {
  Selection result;
  result.source = fmt::format("{}={}", where, quoted(text));
  const Reader reader{result.source};
  std::string_view list = trimmed(text);
  if (list.empty()) reader.refuse("it is empty");
  const bool is_exclusion = list.front() == '^';
  if (is_exclusion) list.remove_prefix(1);
  for (const std::string_view piece : split(list, ',')) {
    const std::string_view entry = trimmed(piece);
    if (entry.empty()) reader.refuse("an entry is empty");
    if (entry.find('^') != std::string_view::npos) {
      reader.refuse("'^' stands once, in front, and excludes all that follows");
    }
    Choice choice = reader.read_choice(entry);
    if (!is_exclusion) {
      result.choices.push_back(std::move(choice));
    } else if (choice.decorators.empty()) {
      result.excluded.push_back(std::move(choice.base));
    } else {
      reader.refuse("decorators are never chosen automatically, so there is nothing to exclude");
    }
  }
  return result;
}

}  // namespace weft::core
