// SEL-7: every variable is in one table, wrong values are refused, unknown names draw exactly one warning.
#include "environment.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

#include "duration.hpp"
#include "expect_error.hpp"
#include "host.hpp"
#include "log_capture.hpp"
#include "set_variable.hpp"
#include "weft/discovery.hpp"

namespace weft::core {
namespace {

using namespace std::chrono_literals;
using test::LogCapture;
using test::SetVariable;
using test::thrown_by;

TEST(DurationText, ReadsSecondsAndUnits) {
  EXPECT_EQ(parse_duration("10"), 10s);
  EXPECT_EQ(parse_duration("10s"), 10s);
  EXPECT_EQ(parse_duration("0.5"), 500ms);
  EXPECT_EQ(parse_duration(".25s"), 250ms);
  EXPECT_EQ(parse_duration("500ms"), 500ms);
  EXPECT_EQ(parse_duration("1.4ms"), 1ms);
  EXPECT_EQ(parse_duration("0"), 0ms);
  for (const char* const text : {"", "s", "ms", "-1", "+1", "1e3", "inf", "nan", "0x10", "1 s", " 1", "1m",
                                 "1.2.3", ".", "10S", "1000001", "99999999999999999999999", "١"}) {
    EXPECT_FALSE(parse_duration(text)) << text;
  }
}

TEST(EnvironmentSel7, EveryVariableHasAMeaningAndIsListed) {
  const auto reports = list_variables();
  std::set<std::string> names;
  for (const VariableReport& report : reports) {
    EXPECT_TRUE(names.insert(report.name).second) << report.name << " is listed twice";
    EXPECT_TRUE(report.name.starts_with("WEFT_")) << report.name;
    EXPECT_FALSE(report.meaning.empty()) << report.name;
  }
  for (const char* const name :
       {"WEFT_PROVIDER", "WEFT_PROVIDER_PATH", "WEFT_DEVICE", "WEFT_LOG", "WEFT_PEER_TIMEOUT"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

TEST(EnvironmentSel7, TheListShowsTheValueAsSet) {
  const auto report_on_timeout = [] {
    for (const VariableReport& report : list_variables()) {
      if (report.name == "WEFT_PEER_TIMEOUT") return report;
    }
    return VariableReport{};
  };
  {
    const SetVariable set("WEFT_PEER_TIMEOUT", "3s");
    EXPECT_TRUE(report_on_timeout().is_set);
    EXPECT_EQ(report_on_timeout().value, "3s");
    EXPECT_EQ(report_on_timeout().default_value, "10");
  }
  const SetVariable unset("WEFT_PEER_TIMEOUT", std::nullopt);
  EXPECT_FALSE(report_on_timeout().is_set);
  EXPECT_EQ(report_on_timeout().value, "");
}

TEST(EnvironmentSel7, UnsetMeansNothing) {
  const SetVariable provider("WEFT_PROVIDER", std::nullopt);
  const SetVariable device("WEFT_DEVICE", std::nullopt);
  const SetVariable level("WEFT_LOG", std::nullopt);
  const SetVariable timeout("WEFT_PEER_TIMEOUT", std::nullopt);
  const SetVariable path("WEFT_PROVIDER_PATH", std::nullopt);
  EXPECT_FALSE(environment::provider_choice());
  EXPECT_FALSE(environment::device_choice());
  EXPECT_FALSE(environment::log_level());
  EXPECT_FALSE(environment::peer_timeout());
  EXPECT_TRUE(environment::provider_path().empty());
}

TEST(EnvironmentSel7, GoodValuesAreRead) {
  const SetVariable level("WEFT_LOG", "debug");
  const SetVariable timeout("WEFT_PEER_TIMEOUT", "0.1");
  const SetVariable path("WEFT_PROVIDER_PATH", ":/a::b/c:");
  EXPECT_EQ(environment::log_level(), LogLevel::debug);
  EXPECT_EQ(environment::peer_timeout(), 100ms);
  EXPECT_EQ(environment::provider_path(), (std::vector<std::string>{"/a", "b/c"}));
  const SetVariable longest("WEFT_PEER_TIMEOUT", "3600");
  EXPECT_EQ(environment::peer_timeout(), 1h);
}

TEST(EnvironmentSel7, WrongValuesAreRefusedWithNameValueAndWhatIsAllowed) {
  for (const char* const value : {"", "99ms", "3601", "soon", "-1"}) {
    const SetVariable set("WEFT_PEER_TIMEOUT", value);
    const auto thrown = thrown_by([] { static_cast<void>(environment::peer_timeout()); });
    EXPECT_EQ(thrown.code, Status::invalid_argument) << value;
    EXPECT_SAYS(thrown.text, "WEFT_PEER_TIMEOUT");
    EXPECT_SAYS(thrown.text, std::string("\"") + value + '"');
    EXPECT_SAYS(thrown.text, "500ms");
  }
  {
    const SetVariable set("WEFT_LOG", "WARNING");
    const auto thrown = thrown_by([] { static_cast<void>(environment::log_level()); });
    EXPECT_EQ(thrown.code, Status::invalid_argument);
    EXPECT_SAYS(thrown.text, "WEFT_LOG is \"WARNING\"");
    EXPECT_SAYS(thrown.text, "trace, debug, info, warning, error, off");
    EXPECT_SAYS(thrown.text, "did you mean \"warning\"?");
  }
  const SetVariable set("WEFT_DEVICE", "");
  EXPECT_EQ(thrown_by([] { static_cast<void>(environment::device_choice()); }).code,
            Status::invalid_argument);
}

TEST(EnvironmentSel7, AnUnknownVariableDrawsExactlyOneWarning) {
  const SetVariable unknown("WEFT_PEER_TIMOUT", "3");
  const SetVariable foreign("WEFTX_OTHER", "3");
  const SetVariable known("WEFT_PEER_TIMEOUT", "3");
  const LogCapture capture;
  environment::warn_unknown({});
  environment::warn_unknown({});
  const auto warnings = capture.warnings("WEFT_PEER_TIMOUT");
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_SAYS(warnings[0], "did you mean \"WEFT_PEER_TIMEOUT\"?");
  EXPECT_TRUE(capture.warnings("WEFTX_OTHER").empty());
  EXPECT_TRUE(capture.warnings("variable WEFT_PEER_TIMEOUT ").empty());
}

TEST(EnvironmentSel7, AProvidersVariablesAreItsOwn) {
  EXPECT_EQ(environment::provider_prefix("my-fabric"), "WEFT_MY_FABRIC_");
  const SetVariable of_unloaded("WEFT_SLEEPING_ANYTHING", "1");
  const SetVariable read("WEFT_AWAKE_DEPTH", "1");
  const SetVariable unread("WEFT_AWAKE_DEPHT", "1");
  const SetVariable of_longer("WEFT_AWAKE_TOO_SPEED", "1");
  const std::array<environment::KnownProvider, 3> providers{{
      {"sleeping", {}},
      {"awake", {{"WEFT_AWAKE_DEPTH"}}},
      {"awake-too", {{"WEFT_AWAKE_TOO_SPEED"}}},
  }};
  const LogCapture capture;
  environment::warn_unknown(providers);
  environment::warn_unknown(providers);
  EXPECT_TRUE(capture.warnings("WEFT_SLEEPING").empty());
  EXPECT_TRUE(capture.warnings("variable WEFT_AWAKE_DEPTH ").empty());
  EXPECT_TRUE(capture.warnings("WEFT_AWAKE_TOO_SPEED").empty());
  const auto warnings = capture.warnings("variable WEFT_AWAKE_DEPHT ");
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_SAYS(warnings[0], "provider awake");
  EXPECT_SAYS(warnings[0], "did you mean \"WEFT_AWAKE_DEPTH\"?");
}

TEST(EnvironmentSel7, AProviderReadsOnlyWhatItLists) {
  const SetVariable set("WEFT_AWAKE_DEPTH", "77");
  const ProviderHost host("awake", {"WEFT_AWAKE_DEPTH", "WEFT_AWAKE_UNSET"});
  EXPECT_EQ(host.variable("WEFT_AWAKE_DEPTH"), "77");
  EXPECT_EQ(host.variable("WEFT_AWAKE_UNSET"), std::nullopt);
  const auto thrown = thrown_by([&] { static_cast<void>(host.variable("WEFT_AWAKE_SECRET")); });
  EXPECT_EQ(thrown.code, Status::invalid_argument);
  EXPECT_SAYS(thrown.text, "WEFT_AWAKE_SECRET");
  EXPECT_SAYS(thrown.text, "awake");
}

TEST(HostSec2, RandomBytesFillAndDiffer) {
  std::array<std::byte, 64> one{};
  std::array<std::byte, 64> two{};
  const ProviderHost host("any", {});
  host.random_bytes(one);
  host.random_bytes(two);
  EXPECT_NE(one, two);
  EXPECT_NE(one, (std::array<std::byte, 64>{}));
  // The end is filled too, also of what the system gives in pieces.
  std::vector<std::byte> large(1 << 20);
  host.random_bytes(large);
  EXPECT_FALSE(
      std::all_of(large.end() - 32, large.end(), [](std::byte byte) { return byte == std::byte{}; }));
  host.random_bytes({});
}

}  // namespace
}  // namespace weft::core
