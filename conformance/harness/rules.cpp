#include "harness/rules.hpp"

#include <utility>

namespace conformance {

const std::vector<std::string>& contract_rules() {
  static const auto* rules = [] {
    constexpr std::pair<const char*, int> sections[] = {{"SEL", 7}, {"CON", 8}, {"MEM", 8}, {"OPS", 11},
                                                        {"ORD", 4}, {"CMP", 7}, {"ERR", 7}, {"PRG", 6},
                                                        {"THR", 2}, {"RCQ", 2}, {"SEC", 3}};
    auto* list = new std::vector<std::string>;
    for (const auto& [section, count] : sections) {
      for (int number = 1; number <= count; ++number) {
        list->push_back(std::string(section) + '-' + std::to_string(number));
      }
    }
    return list;
  }();
  return *rules;
}

bool is_meant(const std::string& rule, const std::string& wanted) {
  return rule == wanted || rule.substr(0, rule.find('-')) == wanted;
}

}  // namespace conformance
