// SEL-1, SEL-2: the language of WEFT_PROVIDER.
#include "selection.hpp"

#include <gtest/gtest.h>

#include "expect_error.hpp"

namespace weft::core {
namespace {

using test::thrown_by;

Selection parse(std::string_view text) { return parse_selection(text, "WEFT_PROVIDER"); }

TEST(SelectionSel1, ReadsNamesAndLists) {
  const Selection one = parse("alpha");
  ASSERT_EQ(one.choices.size(), 1U);
  EXPECT_FALSE(one.is_automatic());
  EXPECT_EQ(one.choices[0].base.name, "alpha");
  EXPECT_EQ(one.choices[0].base.beneath, "");
  EXPECT_EQ(one.source, "WEFT_PROVIDER=\"alpha\"");

  const Selection list = parse("alpha, beta:x ,gamma");
  ASSERT_EQ(list.choices.size(), 3U);
  EXPECT_EQ(list.choices[1].base.name, "beta");
  EXPECT_EQ(list.choices[1].base.beneath, "x");
  EXPECT_EQ(list.choices[2].base.name, "gamma");
}

TEST(SelectionSel2, ReadsWhatLiesBeneathAndDecorators) {
  const Selection read = parse("outer+inner:fast+alpha:shm:0");
  ASSERT_EQ(read.choices.size(), 1U);
  const Choice& choice = read.choices[0];
  EXPECT_EQ(choice.base.name, "alpha");
  EXPECT_EQ(choice.base.beneath, "shm:0");
  ASSERT_EQ(choice.decorators.size(), 2U);
  EXPECT_EQ(choice.decorators[0].name, "outer");
  EXPECT_EQ(choice.decorators[1].name, "inner");
  EXPECT_EQ(choice.decorators[1].beneath, "fast");
  EXPECT_EQ(choice.to_string(), "outer+inner:fast+alpha:shm:0");
}

TEST(SelectionSel1, ReadsExclusions) {
  const Selection read = parse("^alpha,beta:shm");
  EXPECT_TRUE(read.is_automatic());
  EXPECT_TRUE(read.excludes("alpha"));
  EXPECT_TRUE(read.excludes("alpha", "anything"));
  EXPECT_FALSE(read.excludes("beta"));
  EXPECT_TRUE(read.excludes("beta", "shm"));
  EXPECT_FALSE(read.excludes("beta", "net"));
  EXPECT_FALSE(read.excludes("gamma", "shm"));
  EXPECT_TRUE(Selection().is_automatic());
}

TEST(SelectionSel3, RefusesNonsenseWithTheValue) {
  for (const char* const text : {"", " ", ",", "a,", ",a", "a,,b", "^", "^,a", "a,^b", "^a,^b", ":x",
                                 "a:", "+a", "a+", "a++b", "^d+a", "a^b"}) {
    const auto thrown = thrown_by([&] { static_cast<void>(parse(text)); });
    EXPECT_EQ(thrown.code, Status::invalid_argument) << text << ": " << thrown.text;
    EXPECT_SAYS(thrown.text, std::string("WEFT_PROVIDER=\"") + text + '"');
    EXPECT_SAYS(thrown.text, "in order of preference");
  }
}

}  // namespace
}  // namespace weft::core
