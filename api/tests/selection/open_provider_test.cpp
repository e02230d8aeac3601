// SEL-1 to SEL-4, SEL-7, B18, B19, B20: which provider is opened, and what is said about it.
#include "open_provider.hpp"

#include <gtest/gtest.h>

#include <chrono>

#include "expect_error.hpp"
#include "log_capture.hpp"
#include "set_variable.hpp"
#include "weft/discovery.hpp"

namespace weft::core {
namespace {

using namespace std::chrono_literals;
using test::LogCapture;
using test::SetVariable;
using test::Thrown;
using test::thrown_by;

provider::ContextEvents& no_events() {
  struct NoEvents final : provider::ContextEvents {
    void request_service() noexcept override {}
  };
  static NoEvents& events = *new NoEvents;
  return events;
}

class OpenProvider : public ::testing::Test {
 protected:
  static OpenedProvider open(const std::string& provider = {}, const std::string& device = {}) {
    ContextOptions options;
    options.provider = provider;
    options.device = device;
    return open_provider(options, no_events());
  }
  static Thrown failure_of(const std::string& provider, const std::string& device = {}) {
    return thrown_by([&] { static_cast<void>(open(provider, device)); });
  }
  // The files that can never be loaded are passed over in every automatic choice; here they only disturb.
  static constexpr const char* only_fakes = "^broken,empty,future,greedy,letter,misnamed,needy,stranger";

  static std::uint64_t counter(const OpenedProvider& opened, std::string_view name) {
    for (const Counter& one : opened.context->counters()) {
      if (one.name == name) return one.value;
    }
    return ~std::uint64_t{0};
  }

  SetVariable path_{"WEFT_PROVIDER_PATH", WEFT_TEST_PLUGINS};
  SetVariable provider_{"WEFT_PROVIDER", std::nullopt};
  SetVariable device_{"WEFT_DEVICE", std::nullopt};
  SetVariable timeout_{"WEFT_PEER_TIMEOUT", std::nullopt};
  SetVariable log_{"WEFT_LOG", std::nullopt};
  LogCapture capture_;

 private:
  // The file with a wrong name is complained about once per process; not in the middle of a test.
  void SetUp() override {
    static_cast<void>(list_variables());
    ASSERT_LE(capture_.warnings().size(), 1U);
    capture_.clear();
  }
};

TEST_F(OpenProvider, Sel2OptionWinsOverVariable) {
  const SetVariable variable("WEFT_PROVIDER", "beta");
  EXPECT_EQ(open().name, "beta");
  EXPECT_EQ(open("alpha").name, "alpha");
}

TEST_F(OpenProvider, Sel2WhatLiesBeneathReachesTheProvider) {
  const OpenedProvider opened = open("alpha:shm:0");
  EXPECT_EQ(opened.name, "alpha");
  EXPECT_EQ(opened.version, "1.2.3 (fake)");
  EXPECT_EQ(opened.context->attributes().fabric, "shm:0");
}

TEST_F(OpenProvider, Sel2DecoratorsStackInFront) {
  const OpenedProvider opened = open("outer-wrap+wrap:hard+alpha:shm");
  EXPECT_EQ(opened.name, "outer-wrap+wrap+alpha");
  EXPECT_EQ(opened.context->attributes().provider, "outer-wrap+wrap+alpha");

  const Thrown alone = failure_of("wrap");
  EXPECT_EQ(alone.code, Status::invalid_argument);
  EXPECT_SAYS(alone.text, "write wrap+NAME");
  const Thrown reversed = failure_of("alpha+beta");
  EXPECT_EQ(reversed.code, Status::invalid_argument);
  EXPECT_SAYS(reversed.text, "\"alpha\" is no decorator");
  const Thrown missing = failure_of("wrp+alpha");
  EXPECT_EQ(missing.code, Status::not_found);
  EXPECT_SAYS(missing.text, "did you mean \"wrap\"?");
}

TEST_F(OpenProvider, B19AnUnknownNameIsQuotedAndTheNamesAreListedWithReasons) {
  const SetVariable alpha("WEFT_ALPHA_REPORT", "shm/5//;net/4//");
  const SetVariable variable("WEFT_PROVIDER", "alpa");
  const Thrown thrown = failure_of("");
  EXPECT_EQ(thrown.code, Status::not_found);
  EXPECT_SAYS(thrown.text, "WEFT_PROVIDER=\"alpa\"");
  EXPECT_SAYS(thrown.text, "there is no such provider (did you mean \"alpha\"?)");
  EXPECT_SAYS(thrown.text, "alpha (can run: shm, net)");
  EXPECT_SAYS(thrown.text, "beta (cannot run: the fake is switched off)");
  EXPECT_SAYS(thrown.text, "libweft-test-absent-library.so.1");
  EXPECT_SAYS(thrown.text, "wrap (decorator)");
  EXPECT_SAYS(thrown.text, WEFT_TEST_PLUGINS);
}

TEST_F(OpenProvider, B19EmptyAndWronglyWrittenValues) {
  {
    const SetVariable variable("WEFT_PROVIDER", "");
    const Thrown thrown = failure_of("");
    EXPECT_EQ(thrown.code, Status::invalid_argument);
    EXPECT_SAYS(thrown.text, "WEFT_PROVIDER=\"\"");
  }
  const Thrown capitals = failure_of("ALPHA");
  EXPECT_EQ(capitals.code, Status::not_found);
  EXPECT_SAYS(capitals.text, "ContextOptions::provider=\"ALPHA\"");
  EXPECT_SAYS(capitals.text, "did you mean \"alpha\"?");
}

TEST_F(OpenProvider, B19AMissingLibraryIsNamed) {
  const Thrown thrown = failure_of("needy");
  EXPECT_EQ(thrown.code, Status::unavailable);
  EXPECT_SAYS(thrown.text, "\"needy\"");
  EXPECT_SAYS(thrown.text, "libweft-test-absent-library.so.1: cannot open shared object file");
}

TEST_F(OpenProvider, Sel3ANamedProviderIsUsedOrOpeningFails) {
  const SetVariable beta("WEFT_BETA_REPORT", "/9//");
  const SetVariable fails("WEFT_ALPHA_OPEN", "no device nodes in /dev/fake");
  const Thrown thrown = failure_of("alpha");
  EXPECT_EQ(thrown.code, Status::unavailable);
  EXPECT_SAYS(thrown.text, "no device nodes in /dev/fake");
  EXPECT_SAYS(thrown.text, "beta (can run)");
  EXPECT_TRUE(capture_.lines(LogLevel::info).empty());
}

TEST_F(OpenProvider, Sel3WhateverAPlugInDoesBecomesAnError) {
  for (const auto& [how, code, text] : std::vector<std::tuple<const char*, Status, const char*>>{
           {"throw", Status::system_error, "the fake threw something else"},
           {"nothing", Status::unavailable, "opened nothing"},
           {"argument", Status::invalid_argument, "dislikes its argument"}}) {
    const SetVariable fails("WEFT_ALPHA_OPEN", how);
    const Thrown thrown = failure_of("alpha");
    EXPECT_EQ(thrown.code, code) << how;
    EXPECT_SAYS(thrown.text, text);
  }
  // A decorator that fails leaves nothing behind either.
  const SetVariable fails("WEFT_WRAP_OPEN", "not today");
  EXPECT_SAYS(failure_of("wrap+alpha").text, "not today");
}

TEST_F(OpenProvider, B20AListTakesTheFirstThatRunsAndSaysWhatItPassedOver) {
  const SetVariable fails("WEFT_ALPHA_OPEN", "no device");
  EXPECT_EQ(open("nosuch,alpha,beta").name, "beta");
  const auto warnings = capture_.warnings();
  ASSERT_EQ(warnings.size(), 1U) << warnings[0];
  EXPECT_SAYS(warnings[0], "took beta");
  EXPECT_SAYS(warnings[0], "\"nosuch\": there is no such provider");
  EXPECT_SAYS(warnings[0], "\"alpha\": no device");

  const SetVariable fails_too("WEFT_BETA_OPEN", "no port");
  const Thrown thrown = failure_of("alpha,beta");
  EXPECT_EQ(thrown.code, Status::unavailable);
  EXPECT_SAYS(thrown.text, "no device");
  EXPECT_SAYS(thrown.text, "no port");
}

TEST_F(OpenProvider, Sel4EachOpenLogsOneInfoLine) {
  ContextOptions options;
  options.provider = "wrap+alpha:shm";
  options.device = "lo";
  options.thread_mode = ThreadMode::single;
  options.progress_mode = ProgressMode::when_called;
  const OpenedProvider opened = open_provider(options, no_events());
  const auto lines = capture_.lines(LogLevel::info);
  ASSERT_EQ(lines.size(), 1U);
  for (const char* const piece : {"wrap+alpha", "1.2.3 (fake)", "device lo", "address given", "1500 bytes",
                                  "thread mode single", "progress when_called"}) {
    EXPECT_SAYS(lines[0], piece);
  }
  EXPECT_TRUE(capture_.warnings().empty());
}

TEST_F(OpenProvider, Sel1AutomaticChoiceTakesTheHighestPriority) {
  const SetVariable choice("WEFT_PROVIDER", only_fakes);
  const SetVariable alpha("WEFT_ALPHA_REPORT", "slow/1//;middle/5//");
  const SetVariable beta("WEFT_BETA_REPORT", "fast/7//");
  {
    const OpenedProvider opened = open();
    EXPECT_EQ(opened.name, "beta");
    EXPECT_EQ(opened.context->attributes().fabric, "fast");
    EXPECT_TRUE(capture_.warnings().empty());
  }
  const SetVariable without("WEFT_PROVIDER", std::string(only_fakes) + ",beta");
  const OpenedProvider opened = open();
  EXPECT_EQ(opened.name, "alpha");
  EXPECT_EQ(opened.context->attributes().fabric, "middle");
  EXPECT_TRUE(capture_.warnings().empty());  // what the user excluded is no surprise
  const SetVariable without_fabric("WEFT_PROVIDER", std::string(only_fakes) + ",beta:fast,alpha:middle");
  EXPECT_EQ(open().context->attributes().fabric, "slow");
}

TEST_F(OpenProvider, B20AutomaticChoiceWarnsOnceAboutWhatCameBefore) {
  const SetVariable choice("WEFT_PROVIDER", only_fakes);
  const SetVariable alpha("WEFT_ALPHA_REPORT", "rdma/9/no RDMA device/;slow/1//;slower/0/not built/");
  const SetVariable beta("WEFT_BETA_REPORT", "/0/library not found/");
  const OpenedProvider opened = open();
  EXPECT_EQ(opened.context->attributes().fabric, "slow");
  const auto warnings = capture_.warnings();
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_SAYS(warnings[0], "chose alpha:slow");
  EXPECT_SAYS(warnings[0], "alpha:rdma (no RDMA device)");
  // A provider of which nothing runs is named whatever priority it states; a fabric that ranks lower is not.
  EXPECT_SAYS(warnings[0], "beta (library not found)");
  EXPECT_SAYS_NOT(warnings[0], "slower");
}

TEST_F(OpenProvider, Sel1AutomaticChoiceNeverTakesWhatAnybodyCanReach) {
  const SetVariable choice("WEFT_PROVIDER", only_fakes);
  const SetVariable alpha("WEFT_ALPHA_REPORT", "wide/9//open");
  {
    const SetVariable beta("WEFT_BETA_REPORT", "/1//");
    EXPECT_EQ(open().name, "beta");
    const auto warnings = capture_.warnings();
    ASSERT_EQ(warnings.size(), 1U);
    EXPECT_SAYS(warnings[0], "alpha:wide (it trusts whoever reaches the port");
  }
  const Thrown thrown = failure_of("");
  EXPECT_EQ(thrown.code, Status::unavailable);
  EXPECT_SAYS(thrown.text, "WEFT_PROVIDER=alpha:wide");
  EXPECT_EQ(open("alpha:wide").name, "alpha");
}

TEST_F(OpenProvider, Sel1WhatFailsToOpenIsPassedOver) {
  const SetVariable choice("WEFT_PROVIDER", only_fakes);
  const SetVariable alpha("WEFT_ALPHA_REPORT", "/9//");
  const SetVariable fails("WEFT_ALPHA_OPEN", "the port went down");
  const SetVariable beta("WEFT_BETA_REPORT", "/1//");
  EXPECT_EQ(open().name, "beta");
  ASSERT_EQ(capture_.warnings().size(), 1U);
  EXPECT_SAYS(capture_.warnings()[0], "alpha (the port went down)");
}

TEST_F(OpenProvider, Sel3NothingThatRunsIsAnErrorWithEveryReason) {
  const SetVariable alpha("WEFT_ALPHA_REPORT", "throw");
  const Thrown thrown = failure_of("");
  EXPECT_EQ(thrown.code, Status::unavailable);
  for (const char* const piece :
       {"WEFT_PROVIDER is not set", "alpha (its probe failed: the fake's probe threw)",
        "beta (the fake is switched off)", "needy (", "future (", "version 4711", WEFT_TEST_PLUGINS}) {
    EXPECT_SAYS(thrown.text, piece);
  }
}

TEST_F(OpenProvider, Sel1AnExclusionThatNamesNothingIsNoticed) {
  const SetVariable beta("WEFT_BETA_REPORT", "/1//");
  static_cast<void>(open(std::string(only_fakes) + ",alpah"));
  const auto warnings = capture_.warnings("\"alpah\"");
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_SAYS(warnings[0], "did you mean \"alpha\"?");
}

TEST_F(OpenProvider, B18TheDeviceIsObeyedOrRefusedWithTheList) {
  const OpenedProvider by_name = open("alpha", "lo");
  EXPECT_EQ(by_name.context->attributes().device, "lo");
  EXPECT_EQ(by_name.context->attributes().local_address, "given");
  EXPECT_EQ(by_name.local_address.to_string(), "127.0.0.1:0");
  EXPECT_EQ(counter(by_name, "address_size"), by_name.local_address.bytes().size());

  EXPECT_EQ(open("alpha", "127.0.0.2").local_address.to_string(), "127.0.0.2:0");
  EXPECT_FALSE(open("alpha").local_address);

  const SetVariable device("WEFT_DEVICE", "nosuch0");
  const Thrown thrown = failure_of("alpha");
  EXPECT_EQ(thrown.code, Status::not_found);
  EXPECT_SAYS(thrown.text, "\"nosuch0\"");
  EXPECT_SAYS(thrown.text, "lo (127.0.0.1");
  EXPECT_EQ(open("alpha", "lo").local_address.to_string(), "127.0.0.1:0");  // the option wins
}

TEST_F(OpenProvider, PeerTimeoutComesFromOptionThenVariableThenDefault) {
  EXPECT_EQ(open("alpha").peer_timeout, 10s);
  const SetVariable variable("WEFT_PEER_TIMEOUT", "2.5");
  EXPECT_EQ(open("alpha").peer_timeout, 2500ms);
  ContextOptions options;
  options.provider = "alpha";
  options.peer_timeout = 100ms;
  const OpenedProvider opened = open_provider(options, no_events());
  EXPECT_EQ(opened.peer_timeout, 100ms);
  EXPECT_EQ(counter(opened, "peer_timeout"), 100U);
  for (const auto wrong : {99ms, 3'600'001ms, -1ms}) {
    options.peer_timeout = wrong;
    const Thrown thrown = thrown_by([&] { static_cast<void>(open_provider(options, no_events())); });
    EXPECT_EQ(thrown.code, Status::invalid_argument) << wrong.count();
    EXPECT_SAYS(thrown.text, std::to_string(wrong.count()));
  }
}

TEST_F(OpenProvider, Sel7AWrongLogLevelIsReported) {
  const SetVariable variable("WEFT_LOG", "loud");
  const Thrown thrown = failure_of("alpha");
  EXPECT_EQ(thrown.code, Status::invalid_argument);
  EXPECT_SAYS(thrown.text, "WEFT_LOG is \"loud\"");
}

TEST_F(OpenProvider, Sel7UnknownVariablesDrawOneWarningOverSeveralOpens) {
  const SetVariable core("WEFT_PROVIDRE", "alpha");
  const SetVariable of_loaded("WEFT_ALPHA_OPNE", "x");
  const SetVariable of_unloadable("WEFT_FUTURE_ANYTHING", "x");
  static_cast<void>(open("alpha"));
  static_cast<void>(open("alpha"));
  static_cast<void>(failure_of("nosuch"));
  EXPECT_EQ(capture_.warnings("variable WEFT_PROVIDRE ").size(), 1U);
  EXPECT_EQ(capture_.warnings("variable WEFT_ALPHA_OPNE ").size(), 1U);
  EXPECT_TRUE(capture_.warnings("WEFT_FUTURE_ANYTHING").empty());
}

TEST_F(OpenProvider, DiscoveryListsProvidersAndTheirVariables) {
  const SetVariable alpha("WEFT_ALPHA_REPORT", "shm/5//;net/4/no port/open");
  bool has_alpha = false;
  bool has_future = false;
  for (const ProviderReport& report : list_providers()) {
    if (report.name == "alpha") {
      has_alpha = true;
      EXPECT_TRUE(report.loaded);
      EXPECT_EQ(report.version, "1.2.3 (fake)");
      EXPECT_SAYS(report.path, "weft-provider-alpha.so");
      ASSERT_EQ(report.fabrics.size(), 2U);
      EXPECT_TRUE(report.fabrics[0].usable);
      EXPECT_EQ(report.fabrics[1].reason, "no port");
      EXPECT_EQ(report.fabrics[1].trust, Trust::whoever_reaches_the_port);
    }
    if (report.name == "future") {
      has_future = true;
      EXPECT_FALSE(report.loaded);
      EXPECT_SAYS(report.reason, "4711");
      EXPECT_TRUE(report.fabrics.empty());
    }
  }
  EXPECT_TRUE(has_alpha);
  EXPECT_TRUE(has_future);
  for (const ProviderReport& report : list_providers()) {
    EXPECT_EQ(report.decorator, report.name == "wrap" || report.name == "outer-wrap") << report.name;
  }
  const auto folders = plugin_folders();
  EXPECT_NE(std::find(folders.begin(), folders.end(), WEFT_TEST_PLUGINS), folders.end());

  bool has_variable = false;
  for (const VariableReport& variable : list_variables()) {
    if (variable.name != "WEFT_ALPHA_REPORT") continue;
    has_variable = true;
    EXPECT_TRUE(variable.is_set);
    EXPECT_EQ(variable.meaning, "what the fake reports");
  }
  EXPECT_TRUE(has_variable);
}

}  // namespace
}  // namespace weft::core
