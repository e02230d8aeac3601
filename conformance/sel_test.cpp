// SEL: choosing a provider.
#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "harness/test.hpp"

namespace conformance {
namespace {

using weft::LogLevel;
using weft::Status;

// Log lines of this process, from now on.
class LogLines {
 public:
  explicit LogLines(LogLevel level) {
    weft::set_log_level(level);
    weft::set_log_sink([this](LogLevel at, std::string_view line) {
      const std::lock_guard lock(mutex_);
      lines_.emplace_back(at, std::string(line));
    });
  }
  ~LogLines() { weft::set_log_sink({}); }
  LogLines(const LogLines&) = delete;
  LogLines& operator=(const LogLines&) = delete;

  [[nodiscard]] std::vector<std::string> at(LogLevel level, const std::string& with = {}) const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> found;
    for (const auto& [line_level, line] : lines_) {
      if (line_level == level && line.find(with) != std::string::npos) found.push_back(line);
    }
    return found;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::pair<LogLevel, std::string>> lines_;
};

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

bool quotes(const std::string& text, const std::string& value) {
  return holds(text, '\'' + value + '\'') || holds(text, '"' + value + '"');
}

// The last of the decorators and the provider itself.
std::string plain_name(const std::string& provider) { return provider.substr(provider.rfind('+') + 1); }

CONFORMANCE_TEST(SEL, 1, the_variable_names_the_provider, from_cold) {
  setenv("WEFT_PROVIDER", test.setting().selector().c_str(), 1);
  weft::ContextOptions options = test.context_options();
  options.provider.clear();
  const weft::Context context = weft::Context::open(options);
  CHECK_EQ(context.attributes().provider, test.setting().provider);
}

CONFORMANCE_TEST(SEL, 1, the_first_of_a_list_that_can_run_is_taken, from_cold) {
  const std::string name = test.setting().selector();
  weft::ContextOptions options = test.context_options();
  for (const std::string& list : {name, name + ',' + name}) {
    options.provider = list;
    CHECK_EQ(weft::Context::open(options).attributes().provider, test.setting().provider) << "list " << list;
  }
  setenv("WEFT_PROVIDER", ("^" + plain_name(test.setting().provider)).c_str(), 1);
  options.provider.clear();
  try {
    const std::string taken = weft::Context::open(options).attributes().provider;
    CHECK_NE(plain_name(taken), plain_name(test.setting().provider)) << "it was excluded";
  } catch (const weft::Error& error) {
    CHECK(error.code() == Status::not_found || error.code() == Status::unavailable) << error.what();
  }
}

CONFORMANCE_TEST(SEL, 2, the_program_wins_over_the_variable, from_cold) {
  setenv("WEFT_PROVIDER", "no-such-provider", 1);
  const weft::Context context = test.open_context();
  CHECK_EQ(context.attributes().provider, test.setting().provider);
}

CONFORMANCE_TEST(SEL, 2, a_device_that_does_not_exist_is_an_error, from_cold) {
  weft::ContextOptions options = test.context_options();
  options.device = "nosuch0";
  const auto error = error_of([&] { (void)weft::Context::open(options); });
  REQUIRE(error.has_value()) << "opened on a device that does not exist";
  CHECK_EQ(error->code(), Status::not_found);
  CHECK(holds(error->what(), "nosuch0")) << error->what();
}

CONFORMANCE_TEST(SEL, 3, an_unknown_name_is_refused_with_what_exists, from_cold) {
  for (const std::string& value :
       {std::string("verb"), std::string("no-such-provider"), std::string("TCP-")}) {
    weft::ContextOptions options = test.context_options();
    options.provider = value;
    const auto error = error_of([&] { (void)weft::Context::open(options); });
    REQUIRE(error.has_value()) << "opened by the name '" << value << "'";
    CHECK_EQ(error->code(), Status::not_found) << error->what();
    CHECK(quotes(error->what(), value)) << error->what();
    CHECK(holds(error->what(), plain_name(test.setting().provider))) << "names that exist: " << error->what();
  }
}

CONFORMANCE_TEST(SEL, 3, every_known_provider_opens_or_says_why_not, from_cold) {
  bool found = false;
  for (const weft::ProviderReport& provider : weft::list_providers()) {
    found = found || provider.name == plain_name(test.setting().provider);
    CHECK(provider.loaded || !provider.reason.empty())
        << provider.name << " is not loaded, and no reason is given";
    for (const weft::FabricReport& fabric : provider.fabrics) {
      CHECK(fabric.usable || !fabric.reason.empty()) << provider.name << ':' << fabric.name;
      if (fabric.usable) continue;
      weft::ContextOptions options;
      options.provider = fabric.name.empty() ? provider.name : provider.name + ':' + fabric.name;
      const auto error = error_of([&] { (void)weft::Context::open(options); });
      REQUIRE(error.has_value()) << options.provider << " opened although it was said to be unusable";
      CHECK(quotes(error->what(), options.provider)) << error->what();
    }
  }
  CHECK(found) << test.setting().provider << " is not in list_providers()";
}

CONFORMANCE_TEST(SEL, 4, each_open_logs_one_line, from_cold) {
  const LogLines lines(LogLevel::info);
  const weft::Context context = test.open_context();
  const auto info = lines.at(LogLevel::info);
  REQUIRE_EQ(info.size(), 1U);
  const weft::Attributes& attributes = context.attributes();
  CHECK(!attributes.provider.empty());
  CHECK(!attributes.provider_version.empty());
  CHECK(!attributes.device.empty());
  CHECK(!attributes.local_address.empty()) << "\"any\" where the device is not bound to one";
  CHECK_GE(attributes.segment_size, 256) << "no fabric's unit is so small";
  for (const std::string& part : {attributes.provider, attributes.provider_version, attributes.device,
                                  attributes.local_address, std::to_string(attributes.segment_size)}) {
    CHECK(holds(info[0], part)) << '"' << part << "\" is missing in: " << info[0];
  }
  CHECK(lines.at(LogLevel::warning).empty());
}

CONFORMANCE_TEST(SEL, 7, an_unknown_variable_draws_one_warning, from_cold) {
  setenv("WEFT_NO_SUCH_VARIABLE", "1", 1);
  const LogLines lines(LogLevel::warning);
  const weft::Context first = test.open_context();
  const weft::Context second = test.open_context();
  const auto warnings = lines.at(LogLevel::warning, "WEFT_NO_SUCH_VARIABLE");
  CHECK_EQ(warnings.size(), 1U) << (warnings.empty() ? "" : warnings[0]);
}

CONFORMANCE_TEST(SEL, 7, variables_are_listed_with_default_and_meaning, from_cold) {
  setenv("WEFT_PEER_TIMEOUT", "7000", 1);
  const auto variables = weft::list_variables();
  for (const char* name :
       {"WEFT_PROVIDER", "WEFT_PROVIDER_PATH", "WEFT_DEVICE", "WEFT_PEER_TIMEOUT", "WEFT_LOG"}) {
    const auto found =
        std::find_if(variables.begin(), variables.end(), [&](const auto& v) { return v.name == name; });
    REQUIRE(found != variables.end()) << name;
    CHECK(!found->meaning.empty()) << name;
    if (found->name == "WEFT_PEER_TIMEOUT") {
      CHECK(found->is_set && found->value == "7000");
    }
  }
}

}  // namespace
}  // namespace conformance
