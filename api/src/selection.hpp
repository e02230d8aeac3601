// The language of WEFT_PROVIDER and ContextOptions::provider (SEL-1, SEL-2).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft::core {

// "a" or "a:beneath".
struct ProviderName {
  std::string name;
  std::string beneath;

  [[nodiscard]] std::string to_string() const { return beneath.empty() ? name : name + ':' + beneath; }
};

// One entry of a list: "outer+inner+a:beneath".
struct Choice {
  std::vector<ProviderName> decorators;  // outermost first
  ProviderName base;

  [[nodiscard]] std::string to_string() const;
};

struct Selection {
  std::vector<Choice> choices;         // in order of preference; empty: automatic choice
  std::vector<ProviderName> excluded;  // from automatic choice; without `beneath`: the whole provider
  std::string source;                  // as written and where: 'WEFT_PROVIDER="a,b"'

  [[nodiscard]] bool is_automatic() const noexcept { return choices.empty(); }
  [[nodiscard]] bool excludes(std::string_view name) const noexcept;
  [[nodiscard]] bool excludes(std::string_view name, std::string_view fabric) const noexcept;
};

// `where` names the option or variable. Throws Error(invalid_argument) that quotes the value, says what is
// wrong and shows what is allowed. Whether the names exist is not looked at.
[[nodiscard]] Selection parse_selection(std::string_view text, std::string_view where);

}  // namespace weft::core
