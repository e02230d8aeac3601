// SEL-5, SEL-6: plug-ins are loaded on demand, and one that cannot be loaded says why and harms nobody.
#include "weft/provider/plugin.hpp"

#include <elf.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "expect_error.hpp"
#include "log_capture.hpp"
#include "plugin_file.hpp"
#include "plugin_loader.hpp"
#include "set_variable.hpp"

namespace weft::core {
namespace {

namespace files = std::filesystem;
using test::SetVariable;

class PluginSel6 : public ::testing::Test {
 protected:
  PluginSel6() {
    std::string pattern = (files::temp_directory_path() / "weft-plugin-test-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot make a temporary folder");
    own_folder_ = pattern;
  }
  ~PluginSel6() override { files::remove_all(own_folder_); }

  static Plugin load(std::string_view name) { return PluginLoader::instance().load(name); }
  static std::vector<std::string> names() {
    std::vector<std::string> result;
    for (const Plugin& plugin : PluginLoader::instance().find()) result.push_back(plugin.name);
    return result;
  }
  static bool exists(const std::string& name) {
    const auto all = names();
    return std::find(all.begin(), all.end(), name) != all.end();
  }

  files::path own_folder_;
  SetVariable path_{"WEFT_PROVIDER_PATH", WEFT_TEST_PLUGINS};
};

TEST_F(PluginSel6, FindsPlugInsInTheFoldersOfThePath) {
  EXPECT_TRUE(exists("alpha"));
  EXPECT_TRUE(exists("letter"));
  EXPECT_TRUE(exists("outer-wrap"));
  EXPECT_FALSE(exists("Shouting"));
  const auto all = names();
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
}

TEST_F(PluginSel6, AWrongFileNameDrawsOneWarning) {
  std::ofstream(own_folder_ / "weft-provider-My_Fabric.so") << "not looked into";
  const SetVariable path("WEFT_PROVIDER_PATH", own_folder_.string());
  const test::LogCapture capture;
  EXPECT_FALSE(exists("My_Fabric"));
  EXPECT_FALSE(exists("My_Fabric"));
  const auto warnings = capture.warnings("\"My_Fabric\"");
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_SAYS(warnings[0], own_folder_.string());
}

TEST_F(PluginSel6, LooksInThePathFirstThenBesideTheLibrary) {
  const SetVariable path("WEFT_PROVIDER_PATH", "/nonexistent:relative/folder");
  const auto folders = PluginLoader::folders();
  const files::path program = files::canonical("/proc/self/exe").parent_path();
  ASSERT_EQ(folders.size(), 4U);
  EXPECT_EQ(folders[0], "/nonexistent");
  EXPECT_EQ(folders[1], files::current_path() / "relative/folder");
  EXPECT_EQ(folders[2], program / "weft");
  EXPECT_EQ(folders[3], program.parent_path() / "lib/weft");
}

TEST_F(PluginSel6, TheFirstFolderWins) {
  files::copy(files::path(WEFT_TEST_PLUGINS) / "weft-provider-stranger.so", own_folder_);
  const SetVariable path("WEFT_PROVIDER_PATH", own_folder_.string() + ":" WEFT_TEST_PLUGINS);
  EXPECT_EQ(load("stranger").path, own_folder_ / "weft-provider-stranger.so");
}

TEST_F(PluginSel6, LoadsAWorkingOneAndKeepsIt) {
  const Plugin plugin = load("alpha");
  ASSERT_TRUE(plugin.is_loaded()) << plugin.reason;
  EXPECT_EQ(plugin.version, "1.2.3 (fake)");
  EXPECT_EQ(plugin.reason, "");
  ASSERT_EQ(plugin.variables.size(), 2U);
  EXPECT_EQ(plugin.variables[0].name, "WEFT_ALPHA_REPORT");
  EXPECT_FALSE(plugin.provider->is_decorator());
  // Loaded once; still there when its folder is not.
  const SetVariable path("WEFT_PROVIDER_PATH", std::nullopt);
  EXPECT_EQ(load("alpha").provider, plugin.provider);
  EXPECT_TRUE(exists("alpha"));
}

TEST_F(PluginSel6, AnotherInterfaceVersionIsRefusedNamingBothWithoutRunningIt) {
  const Plugin plugin = load("future");  // its code would abort the process
  EXPECT_FALSE(plugin.is_loaded());
  EXPECT_SAYS(plugin.reason, "version 4711");
  EXPECT_SAYS(plugin.reason, "version " + std::to_string(provider::interface_version));
  EXPECT_SAYS(plugin.reason, plugin.path);
  // One sentence, one line.
  EXPECT_EQ(plugin.reason.find('\n'), std::string::npos);
  EXPECT_EQ(plugin.reason.find(". "), std::string::npos);
}

TEST_F(PluginSel6, WhatIsNoPlugInIsRefusedWithTheReason) {
  const struct {
    const char* name;
    const char* why;
  } cases[] = {
      {"letter", "not a shared object"},
      {"stranger", "does not export weft_provider_interface_version"},
      {"needy", "libweft-test-absent-library.so.1"},
      {"misnamed", "calls its provider \"somebody-else\""},
      {"empty", "gave no provider object"},
      {"broken", "damaged descriptor"},
      {"greedy", "WEFT_SOMEBODY_ELSE_REPORT"},
      {"nosuch", "there is no such provider"},
      {"../plugins/found/weft-provider-alpha", "there is no such provider"},
      {"", "there is no such provider"},
  };
  for (const auto& one : cases) {
    const Plugin plugin = load(one.name);
    EXPECT_FALSE(plugin.is_loaded()) << one.name;
    EXPECT_SAYS(plugin.reason, one.why);
  }
}

TEST_F(PluginSel6, AFileCutShortIsToldBeforeItIsMapped) {
  const files::path whole = files::path(WEFT_TEST_PLUGINS) / "weft-provider-beta.so";
  const files::path cut = own_folder_ / "weft-provider-cut.so";
  const auto size = files::file_size(whole);
  for (const std::uintmax_t part : {std::uintmax_t{0}, std::uintmax_t{1}, std::uintmax_t{63},
                                    std::uintmax_t{64}, size / 4, size / 2, size - 1}) {
    files::copy_file(whole, cut, files::copy_options::overwrite_existing);
    files::resize_file(cut, part);
    const PluginFile file = inspect_plugin_file(cut.string());
    EXPECT_FALSE(file.reason.empty()) << part << " of " << size;
    EXPECT_FALSE(file.version) << part;
  }
}

// Any one byte may be wrong: the examiner answers something and stays alive.
TEST_F(PluginSel6, ADamagedFileCannotHurtTheExaminer) {
  const files::path whole = files::path(WEFT_TEST_PLUGINS) / "weft-provider-future.so";
  std::ifstream in(whole, std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(in)), {});
  ASSERT_GT(good.size(), 1000U);
  const files::path damaged = own_folder_ / "weft-provider-damaged.so";
  files::copy_file(whole, damaged);
  std::fstream file(damaged, std::ios::binary | std::ios::in | std::ios::out);
  const auto put = [&](std::size_t at, std::string_view bytes) {
    file.seekp(static_cast<std::streamoff>(at));
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size())).flush();
    ASSERT_TRUE(file.good());
  };
  int still_right = 0;
  int refused = 0;
  const auto examine_with = [&](std::size_t at, const std::string& bytes) {
    put(at, bytes);
    const PluginFile examined = inspect_plugin_file(damaged.string());
    if (examined.version == 4711U) ++still_right;
    if (!examined.reason.empty()) ++refused;
    put(at, std::string_view(good).substr(at, bytes.size()));
  };
  // The headers byte by byte, with the values that break arithmetic.
  constexpr std::size_t end_of_headers = sizeof(Elf64_Ehdr) + 4 * sizeof(Elf64_Phdr);
  for (std::size_t at = 0; at < end_of_headers; ++at) {
    for (const char value : {'\0', '\x7f', '\xff'}) examine_with(at, std::string(1, value));
  }
  // The section table, eight bytes at a time.
  Elf64_Ehdr header{};
  std::memcpy(&header, good.data(), sizeof header);
  ASSERT_LT(header.e_shoff, good.size());
  for (std::size_t at = header.e_shoff; at + 8 <= good.size(); at += 8)
    examine_with(at, std::string(8, '\xff'));
  EXPECT_EQ(inspect_plugin_file(damaged.string()).version, 4711U);  // all was put back
  EXPECT_GT(still_right, 0);
  EXPECT_GT(refused, 0);
}

TEST_F(PluginSel6, OddFilesAreRefused) {
  EXPECT_SAYS(inspect_plugin_file((own_folder_ / "nothing").string()).reason, "No such file");
  EXPECT_SAYS(inspect_plugin_file(own_folder_.string()).reason, "not a file");
  EXPECT_SAYS(inspect_plugin_file("/dev/null").reason, "not a file");
  const PluginFile good = inspect_plugin_file(WEFT_TEST_PLUGINS "/weft-provider-beta.so");
  EXPECT_EQ(good.reason, "");
  EXPECT_EQ(good.version, provider::interface_version);
  EXPECT_EQ(inspect_plugin_file(WEFT_TEST_PLUGINS "/weft-provider-future.so").version, 4711U);
}

TEST(PluginNames, AreLowerCaseLettersDigitsAndDashes) {
  for (const char* const name : {"a", "alpha", "my-fabric", "v2"})
    EXPECT_TRUE(PluginLoader::is_name(name)) << name;
  for (const char* const name : {"", "A", "2a", "-a", "a_b", "a.b", "a/b", "a b", "ä"}) {
    EXPECT_FALSE(PluginLoader::is_name(name)) << name;
  }
}

}  // namespace
}  // namespace weft::core
