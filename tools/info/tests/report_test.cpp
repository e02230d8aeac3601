// How findings are told.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "advice.hpp"
#include "reports.hpp"
#include "words.hpp"

namespace info {
namespace {

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// On one line, so that breaking into lines does not matter.
std::string joined(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const char plain = c == '\n' ? ' ' : c;
    if (plain != ' ' || result.empty() || result.back() != ' ') result += plain;
  }
  return result;
}

weft::Attributes attributes() {
  weft::Attributes made;
  made.provider = "alpha";
  made.fabric = "shm";
  made.device = "alpha0";
  made.trust = weft::Trust::same_user;
  made.trust_text = "Not encrypted.";
  made.limits.max_message = 1U << 20U;
  made.limits.max_inline = 220;
  made.deviations = {{"MEM-7", "it hides its descriptors", "the child keeps them"}};
  return made;
}

Findings findings() {
  Findings made;
  made.version = "9.8.7";
  made.plugin_folders = {"/first", "/second"};
  made.choice.attributes = attributes();
  Provider alpha;
  alpha.report = {.name = "alpha",
                  .version = "1.2",
                  .path = "/first/weft-provider-alpha.so",
                  .loaded = true,
                  .decorator = false,
                  .reason = {},
                  .fabrics = {{"shm", "alpha0", true, "", 7, weft::Trust::same_user},
                              {"net", "", false, "no port is up; plug a cable in", 5, weft::Trust::nobody},
                              {"tcp", "", true, "", 5, weft::Trust::whoever_reaches_the_port}}};
  alpha.opened.push_back({.selector = "alpha:shm",
                          .attributes = attributes(),
                          .problem = {},
                          .thread_modes = {weft::ThreadMode::safe, weft::ThreadMode::single},
                          .progress_modes = {weft::ProgressMode::automatic}});
  alpha.opened.push_back({.selector = "alpha:tcp",
                          .attributes = {},
                          .problem = "the port is taken",
                          .thread_modes = {},
                          .progress_modes = {}});
  made.providers.push_back(alpha);
  Provider needy;
  needy.report.name = "needy";
  needy.report.reason = "libfabric.so.1: cannot open shared object file";
  needy.advice = advice_for_loading(needy.report.reason);
  made.providers.push_back(needy);
  Provider wrap;
  wrap.report = {.name = "wrap",
                 .version = "1",
                 .path = "/second/weft-provider-wrap.so",
                 .loaded = true,
                 .decorator = true,
                 .reason = {},
                 .fabrics = {}};
  made.providers.push_back(wrap);
  made.missing = {"beta"};
  made.variables = {{"WEFT_ALPHA_X", "3", "how many", "\xff", true}, {"WEFT_ALPHA_Y", "", "what", "", false}};
  made.warnings = {"something is odd"};
  return made;
}

TEST(TextReport, ReadsLikeADiagnosis) {
  const std::string text = joined(text_report(findings(), 80));
  for (const char* part : {"weft 9.8.7",
                           "leaves the choice to the environment gets alpha.",
                           "/first, /second",
                           "something is odd",
                           "alpha:shm on alpha0: can run",
                           "alpha:net: cannot run: no port is up; plug a cable in",
                           "alpha:tcp: can run, but is never chosen automatically",
                           "alpha 1.2, from /first/weft-provider-alpha.so alpha:shm",
                           "decorators, which go in front of any of them (strict+tcp): wrap",
                           "messages up to 1 MiB",
                           "inline up to 220 bytes",
                           "same user has to be trusted. Not encrypted.",
                           "threads safe, single; progress automatic",
                           "from MEM-7: it hides its descriptors. Instead: the child keeps",
                           "but it could not be opened: the port is taken",
                           "needy: cannot be loaded",
                           "install the Debian package libfabric1",
                           "beta: not installed; its Debian package is weft-provider-beta",
                           "locked memory: unlimited",
                           "WEFT_ALPHA_X = \"\xff\" how many. Default: 3.",
                           "WEFT_ALPHA_Y what. Default: unset."}) {
    EXPECT_TRUE(says(text, part)) << '"' << part << "\" is missing in: " << text;
  }
}

TEST(TextReport, SaysWhyNothingCanBeOpened) {
  Findings made = findings();
  made.choice = {{}, "there is no such provider"};
  EXPECT_TRUE(says(joined(text_report(made, 80)), "cannot start: there is no such provider"));
}

TEST(TextReport, KeepsToTheWidth) {
  std::istringstream lines(text_report(findings(), 70));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 70U) << line;
}

TEST(JsonReport, HoldsTheSame) {
  const auto json = nlohmann::json::parse(json_report(findings()));
  EXPECT_EQ(json.at("version"), "9.8.7");
  EXPECT_EQ(json.at("choice").at("provider"), "alpha");
  const auto& alpha = json.at("providers").at(0);
  EXPECT_EQ(alpha.at("fabrics").size(), 3U);
  EXPECT_EQ(alpha.at("fabrics").at(1).at("reason"), "no port is up; plug a cable in");
  EXPECT_EQ(alpha.at("fabrics").at(2).at("trust"), "whoever reaches the port");
  EXPECT_EQ(alpha.at("opened").at(0).at("attributes").at("limits").at("max_message"), 1 << 20);
  EXPECT_EQ(alpha.at("opened").at(0).at("thread_modes"), (nlohmann::json{"safe", "single"}));
  EXPECT_EQ(alpha.at("opened").at(1).at("problem"), "the port is taken");
  EXPECT_FALSE(alpha.at("opened").at(1).contains("attributes"));
  EXPECT_EQ(json.at("not_installed").at(0).at("package"), "weft-provider-beta");
  EXPECT_TRUE(json.at("machine").at("locked_memory").at("now").is_null());
  EXPECT_TRUE(json.at("variables").at(0).at("value").is_string()) << "bytes that are no text are no obstacle";
  EXPECT_TRUE(json.at("variables").at(1).at("value").is_null());
  EXPECT_EQ(json.at("warnings").at(0), "something is odd");
}

TEST(Advice, NamesThePackageOfAMissingLibrary) {
  const auto advice = [](const std::string& library) {
    return advice_for_loading("/x/weft-provider-y.so cannot be loaded: " + library +
                              ": cannot open shared object file: No such file or directory");
  };
  EXPECT_TRUE(says(advice("libibverbs.so.1"), "libibverbs1"));
  EXPECT_TRUE(says(advice("libucp.so.0"), "libucx0"));
  EXPECT_TRUE(says(advice("libsomething-else.so.3"), "apt-file search libsomething-else.so.3"));
  EXPECT_EQ(advice_for_loading("it is built for version 3 of the provider interface"), "");
}

TEST(Wrapped, BreaksAtSpacesAndLeavesLongWordsWhole) {
  EXPECT_EQ(wrapped("one two three", "- ", 2, 9), "- one two\n  three\n");
  EXPECT_EQ(wrapped("incomprehensible", "", 2, 5), "  incomprehensible\n");
  EXPECT_EQ(wrapped("", "x", 2, 5), "x \n");
}

}  // namespace
}  // namespace info
