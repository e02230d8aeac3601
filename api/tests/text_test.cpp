#include "text.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "weft/status.hpp"
#include "weft/version.hpp"
#include "weft/work_request.hpp"

namespace weft::core {
namespace {

TEST(Text, AnAddressThatWasWrittenIsSaidOnce) {
  EXPECT_EQ(with_failures("127.0.0.1:7", "127.0.0.1:7: Connection refused"),
            "\"127.0.0.1:7\": Connection refused");
  EXPECT_EQ(with_failures("localhost:7", "[::1]:7: no; 127.0.0.1:7: no"),
            "\"localhost:7\": [::1]:7: no; 127.0.0.1:7: no");
  EXPECT_EQ(with_failures("127.0.0.1:7", "127.0.0.1:77: no"), "\"127.0.0.1:7\": 127.0.0.1:77: no");
}

TEST(Text, QuotesWhatComesFromOutside) {
  EXPECT_EQ(quoted("verb"), "\"verb\"");
  EXPECT_EQ(quoted(""), "\"\"");
  EXPECT_EQ(quoted("a\"b\\"), "\"a\\\"b\\\\\"");
  EXPECT_EQ(quoted("a\nb\x01"), "\"a\\nb\\x01\"");
  EXPECT_EQ(quoted(std::string(300, 'a')), '"' + std::string(200, 'a') + "...\"");
}

TEST(Text, SplitsAndJoins) {
  EXPECT_EQ(split("a,,b", ','), (std::vector<std::string_view>{"a", "", "b"}));
  EXPECT_EQ(split("", ','), (std::vector<std::string_view>{""}));
  EXPECT_EQ(joined(std::vector<std::string>{"a", "b"}), "a, b");
  EXPECT_EQ(joined(std::vector<std::string>{}), "none");
}

TEST(Text, SuggestsWhatIsNearAndNothingElse) {
  const std::vector<std::string> names{"alpha", "beta", "gamma-ray"};
  EXPECT_EQ(suggestion("alph", names), " (did you mean \"alpha\"?)");
  EXPECT_EQ(suggestion("ALPHA", names), " (did you mean \"alpha\"?)");
  EXPECT_EQ(suggestion("gama-ray", names), " (did you mean \"gamma-ray\"?)");
  EXPECT_EQ(suggestion("tpc", std::vector<std::string>{"tcp", "ofi"}), " (did you mean \"tcp\"?)");
  EXPECT_EQ(suggestion("ucx", std::vector<std::string>{"tcp", "ofi"}), "");
  EXPECT_EQ(suggestion("delta-force", names), "");
  EXPECT_EQ(suggestion("", names), "");
  EXPECT_EQ(suggestion("alpha", {}), "");
}

TEST(Text, EveryStatusAndOperationHasItsOwnName) {
  std::set<std::string_view> names;
  for (int value = 0; value <= static_cast<int>(Status::system_error); ++value) {
    const std::string_view name = to_string(static_cast<Status>(value));
    EXPECT_NE(name, "unknown_status") << value;
    EXPECT_TRUE(names.insert(name).second) << name;
  }
  names.clear();
  for (int value = 0; value <= static_cast<int>(Operation::low_water); ++value) {
    const std::string_view name = to_string(static_cast<Operation>(value));
    EXPECT_NE(name, "unknown_operation") << value;
    EXPECT_TRUE(names.insert(name).second) << name;
  }
  EXPECT_EQ(to_string(Status::remote_access_error), "remote_access_error");
  EXPECT_EQ(to_string(Operation::write_with_immediate), "write_with_immediate");
  // Values that a later version or a damaged entry may bring are named too, never null.
  EXPECT_EQ(to_string(static_cast<Status>(250)), "unknown_status");
  EXPECT_EQ(to_string(static_cast<Operation>(250)), "unknown_operation");
}

TEST(Text, TheVersionIsThatOfTheHeader) {
  EXPECT_EQ(version(), std::to_string(version_major) + '.' + std::to_string(version_minor) + '.' +
                           std::to_string(version_patch));
}

}  // namespace
}  // namespace weft::core
