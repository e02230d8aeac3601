// weft-info itself, as a user runs it.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

namespace {

struct Output {
  std::string text;
  int status = -1;
};

// Through a shell, with the variables given in front; no other WEFT_ variable is set.
Output run(const std::string& variables, const std::string& arguments) {
  const std::string clean =
      "for name in $(env | sed -n 's/^\\(WEFT_[A-Z_]*\\)=.*/\\1/p'); do unset $name; done; ";
  const std::string command = clean + variables + " " WEFT_INFO_PROGRAM " " + arguments + " 2>&1";
  Output output;
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  std::array<char, 4096> piece{};
  for (std::size_t length = 0; (length = std::fread(piece.data(), 1, piece.size(), pipe)) > 0;) {
    output.text.append(piece.data(), length);
  }
  const int status = ::pclose(pipe);
  output.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return output;
}

nlohmann::json json_of(const std::string& variables, int status = 0) {
  const Output output = run(variables, "--json");
  EXPECT_EQ(output.status, status) << output.text;
  return nlohmann::json::parse(output.text, nullptr, false);
}

const nlohmann::json* named(const nlohmann::json& list, const std::string& name) {
  for (const auto& one : list) {
    if (one.at("name") == name) return &one;
  }
  return nullptr;
}

constexpr const char* with_fakes = "WEFT_PROVIDER_PATH=" WEFT_TEST_PLUGINS;

TEST(WeftInfo, ShowsTcpWithLimitsTrustAndModes) {
  const auto json = json_of("");
  const auto* const tcp = named(json.at("providers"), "tcp");
  ASSERT_NE(tcp, nullptr);
  EXPECT_TRUE(tcp->at("loaded"));
  EXPECT_FALSE(tcp->at("version").get<std::string>().empty());
  ASSERT_EQ(tcp->at("opened").size(), 1U);
  const auto& opened = tcp->at("opened").at(0);
  EXPECT_EQ(opened.at("selector"), "tcp");
  EXPECT_GE(opened.at("attributes").at("limits").at("max_message"), 1 << 20);
  EXPECT_EQ(opened.at("attributes").at("trust"), "nobody");
  EXPECT_FALSE(opened.at("attributes").at("trust_text").get<std::string>().empty());
  EXPECT_EQ(opened.at("thread_modes"), (nlohmann::json{"safe", "single"}));
  EXPECT_EQ(opened.at("progress_modes"), (nlohmann::json{"automatic", "when_called"}));
}

// SEL-7: every variable of the core and of each provider, with default and meaning.
TEST(WeftInfo, ListsEveryVariable) {
  const auto json = json_of(std::string(with_fakes) + " WEFT_LOG=error");
  for (const char* name : {"WEFT_PROVIDER", "WEFT_PROVIDER_PATH", "WEFT_DEVICE", "WEFT_LOG",
                           "WEFT_PEER_TIMEOUT", "WEFT_ALPHA_REPORT", "WEFT_BETA_OPEN"}) {
    const auto* const variable = named(json.at("variables"), name);
    ASSERT_NE(variable, nullptr) << name;
    EXPECT_FALSE(variable->at("meaning").get<std::string>().empty()) << name;
    EXPECT_TRUE(variable->contains("default")) << name;
  }
  EXPECT_EQ(named(json.at("variables"), "WEFT_LOG")->at("value"), "error");
  EXPECT_EQ(named(json.at("variables"), "WEFT_LOG")->at("default"), "warning");
  EXPECT_TRUE(named(json.at("variables"), "WEFT_DEVICE")->at("value").is_null());
  const std::string text = run(with_fakes, "").text;
  for (const auto& variable : json.at("variables")) {
    EXPECT_NE(text.find(variable.at("name").get<std::string>()), std::string::npos) << variable;
  }
}

// SEL-7: an unknown variable is pointed out, once.
TEST(WeftInfo, PointsOutAVariableThatNobodyReads) {
  const auto json = json_of("WEFT_PROVIDRE=tcp");
  int count = 0;
  for (const auto& warning : json.at("warnings")) {
    if (warning.get<std::string>().find("WEFT_PROVIDRE") != std::string::npos) ++count;
  }
  EXPECT_EQ(count, 1);
}

TEST(WeftInfo, SaysWhyTheWantedProviderCannotBeOpened) {
  const Output output = run("WEFT_PROVIDER=verb", "");
  EXPECT_EQ(output.status, 1);
  EXPECT_NE(output.text.find("cannot start"), std::string::npos) << output.text;
  EXPECT_NE(output.text.find("no such provider"), std::string::npos);
  // The rest is told all the same.
  EXPECT_NE(output.text.find("tcp: can run"), std::string::npos) << output.text;
}

TEST(WeftInfo, SaysOfEachPluginWhyItCannotRun) {
  const auto json = json_of(std::string(with_fakes) + " WEFT_ALPHA_REPORT='shm/5//;net/4/no port/open'");
  const auto* const alpha = named(json.at("providers"), "alpha");
  ASSERT_NE(alpha, nullptr);
  EXPECT_EQ(alpha->at("fabrics").at(1).at("reason"), "no port");
  EXPECT_EQ(alpha->at("opened").at(0).at("selector"), "alpha:shm");
  EXPECT_TRUE(named(json.at("providers"), "wrap")->at("decorator"));
  const auto* const future = named(json.at("providers"), "future");
  ASSERT_NE(future, nullptr);
  EXPECT_FALSE(future->at("loaded"));
  EXPECT_NE(future->at("reason").get<std::string>().find("4711"), std::string::npos);
  const auto* const needy = named(json.at("providers"), "needy");
  ASSERT_NE(needy, nullptr);
  EXPECT_NE(needy->at("advice").get<std::string>().find("libweft-test-absent-library.so.1"),
            std::string::npos);
}

TEST(WeftInfo, AFabricThatCannotBeOpenedAfterAllIsTold) {
  const auto json =
      json_of(std::string(with_fakes) + " WEFT_PROVIDER=tcp WEFT_ALPHA_REPORT=/5// WEFT_ALPHA_OPEN=gone");
  const auto* const alpha = named(json.at("providers"), "alpha");
  ASSERT_NE(alpha, nullptr);
  EXPECT_FALSE(alpha->at("opened").at(0).at("opened"));
  EXPECT_NE(alpha->at("opened").at(0).at("problem").get<std::string>().find("gone"), std::string::npos);
}

TEST(WeftInfo, RefusesAnUnknownOption) {
  const Output output = run("", "--jsn");
  EXPECT_EQ(output.status, 2);
  EXPECT_NE(output.text.find("--jsn"), std::string::npos) << output.text;
}

}  // namespace
