// SEL-5, SEL-6: plug-ins.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "harness/test.hpp"
#include "weft/provider/plugin.hpp"

namespace conformance {
namespace {

namespace fs = std::filesystem;

bool is_mapped(const std::string& library) {
  std::ifstream maps("/proc/self/maps");
  std::string line;
  while (std::getline(maps, line)) {
    if (line.find('/' + library) != std::string::npos) return true;
  }
  return false;
}

CONFORMANCE_TEST(SEL, 5, the_library_itself_needs_no_fabrics_library, from_cold) {
  CHECK(is_mapped("libweft.so"));
  for (const char* library : {"libibverbs.so", "librdmacm.so", "libfabric.so", "libucp.so", "libuct.so"}) {
    CHECK(!is_mapped(library)) << library << " is loaded although no provider is";
  }
  CHECK(!is_mapped("weft-provider-")) << "a plug-in is loaded before anybody asked for one";
  (void)test.open_context();
  CHECK(is_mapped("weft-provider-"));
}

// A folder that is gone when the test is.
class Folder {
 public:
  Folder() {
    std::string name = fs::temp_directory_path() / "weft-conformance-XXXXXX";
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// In front of the folders searched so far: the provider under test may be from one of those.
void search_first(const std::string& folders) {
  const char* const before = std::getenv("WEFT_PROVIDER_PATH");
  setenv("WEFT_PROVIDER_PATH", (before == nullptr ? folders : folders + ':' + before).c_str(), 1);
}

std::string reason_for(const fs::path& plugin) {
  for (const weft::ProviderReport& provider : weft::list_providers()) {
    if (fs::path(provider.path) != plugin) continue;
    CHECK(!provider.loaded) << plugin;
    return provider.reason;
  }
  return {};
}

CONFORMANCE_TEST(SEL, 6, a_plugin_of_another_version_is_refused, from_cold) {
  // Beside this program, as it is built and as it is installed.
  const fs::path prefix = fs::read_symlink("/proc/self/exe").parent_path().parent_path();
  const fs::path name = fs::path("weft-conformance") / "weft-provider-otherversion.so";
  fs::path built = prefix / "lib" / name;
  if (!fs::exists(built)) built = prefix / WEFT_LIBRARY_FOLDER / name;
  REQUIRE(fs::exists(built)) << built << " is missing; it is built and installed with this program";
  const Folder folder;
  const fs::path plugin = folder.path() / built.filename();
  fs::copy_file(built, plugin);
  search_first(folder.path());
  const std::string reason = reason_for(plugin);
  for (const std::uint32_t version :
       {weft::provider::interface_version, weft::provider::interface_version + 1000}) {
    CHECK(reason.find(std::to_string(version)) != std::string::npos) << "both versions are named: " << reason;
  }
  weft::ContextOptions options = test.context_options();
  options.provider = "otherversion";
  const auto error = error_of([&] { (void)weft::Context::open(options); });
  REQUIRE(error.has_value());
  CHECK_EQ(error->code(), weft::Status::unavailable) << error->what();
}

CONFORMANCE_TEST(SEL, 6, a_file_that_is_no_plugin_harms_nothing, from_cold) {
  const Folder folder;
  std::ofstream(folder.path() / "weft-provider-empty.so").flush();
  std::ofstream(folder.path() / "weft-provider-text.so") << "this is no shared object\n";
  fs::create_directory(folder.path() / "weft-provider-folder.so");
  fs::create_symlink("/nowhere", folder.path() / "weft-provider-dangling.so");
  search_first(folder.path().string() + ":/no/such/folder");
  for (const char* name : {"empty", "text"}) {
    const fs::path plugin = folder.path() / ("weft-provider-" + std::string(name) + ".so");
    CHECK(!reason_for(plugin).empty()) << name;
  }
  CHECK_EQ(test.open_context().attributes().provider, test.setting().provider);
}

// A provider that is all right but for a library it wants.
CONFORMANCE_TEST(SEL, 3, a_library_that_is_missing_is_named, from_cold) {
  const std::string selector = test.setting().provider;
  const std::string own = selector.substr(selector.rfind('+') + 1);
  std::string bytes;
  for (const weft::ProviderReport& provider : weft::list_providers()) {
    if (provider.name != own) continue;
    std::ifstream file(provider.path, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  const std::string there = "libstdc++.so.6";
  const std::string missing = "libstdXX.so.6_";  // as long
  REQUIRE(bytes.find(there) != std::string::npos) << own << " does not want " << there;
  for (std::size_t at = bytes.find(there); at != std::string::npos; at = bytes.find(there, at)) {
    bytes.replace(at, there.size(), missing);
  }
  const Folder folder;
  const fs::path plugin = folder.path() / "weft-provider-wanting.so";
  std::ofstream(plugin, std::ios::binary) << bytes;
  search_first(folder.path());
  const std::string reason = reason_for(plugin);
  CHECK(reason.find(missing) != std::string::npos) << "the reason is: " << reason;
  weft::ContextOptions options = test.context_options();
  options.provider = "wanting";
  const auto error = error_of([&] { (void)weft::Context::open(options); });
  REQUIRE(error.has_value());
  CHECK_EQ(error->code(), weft::Status::unavailable) << error->what();
  CHECK(std::string(error->what()).find(missing) != std::string::npos) << error->what();
}

}  // namespace
}  // namespace conformance
