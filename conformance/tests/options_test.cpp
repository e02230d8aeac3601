#include "harness/options.hpp"

#include <gtest/gtest.h>

#include <array>

namespace conformance {
namespace {

Options parse(std::string rule) {
  Options options;
  std::string program = "weft-conformance";
  std::string option = "--rule";
  std::array<char*, 4> arguments = {program.data(), option.data(), rule.data(), nullptr};
  EXPECT_TRUE(parse_options(3, arguments.data(), options));
  return options;
}

TEST(Options, rules_and_sections_come_in_lists) {
  EXPECT_EQ(parse("ORD-1").rules, std::vector<std::string>{"ORD-1"});
  EXPECT_EQ(parse("ORD,CMP-2").rules, (std::vector<std::string>{"ORD", "CMP-2"}));
}

TEST(Options, a_rule_that_does_not_exist_is_an_error) {
  for (const char* rule : {"ORD-99", "ord", "", "ORD,", "ORD,NONE"}) {
    EXPECT_THROW(parse(rule), std::runtime_error) << rule;
  }
}

}  // namespace
}  // namespace conformance
