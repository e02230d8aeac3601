#include "plugin_loader.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "environment.hpp"
#include "log.hpp"
#include "plugin_file.hpp"
#include "signal_keeper.hpp"
#include "text.hpp"
#include "weft/provider/plugin.hpp"
#include "weft/version.hpp"

namespace weft::core {
namespace {

namespace files = std::filesystem;

constexpr std::string_view file_prefix = "weft-provider-";
constexpr std::string_view file_suffix = ".so";

// What is thrown while loading; its text becomes Plugin::reason.
struct Refusal {
  std::string reason;
};

// The folder of libweft.so, or of the program when the core is part of it.
files::path own_folder() {
  Dl_info info{};
  void* extra = nullptr;
  std::error_code error;
  files::path self = "/proc/self/exe";
  if (::dladdr1(reinterpret_cast<const void*>(&own_folder), &info, &extra, RTLD_DL_LINKMAP) != 0 &&
      extra != nullptr) {
    // The program itself has an empty name here (dli_fname would be what it was called as).
    const std::string_view name = static_cast<const link_map*>(extra)->l_name;
    if (!name.empty()) self = name;
  }
  const files::path real = files::canonical(self, error);
  return error ? files::path() : real.parent_path();
}

std::string name_of(const files::path& file) {
  const std::string text = file.filename().string();
  if (text.size() <= file_prefix.size() + file_suffix.size() || !text.starts_with(file_prefix) ||
      !text.ends_with(file_suffix)) {
    return {};
  }
  return text.substr(file_prefix.size(), text.size() - file_prefix.size() - file_suffix.size());
}

std::vector<std::string> names_of(const std::vector<provider::Variable>& variables) {
  std::vector<std::string> names;
  names.reserve(variables.size());
  for (const provider::Variable& variable : variables) names.push_back(variable.name);
  return names;
}

void check_version(const std::string& path, std::uint32_t version) {
  if (version == provider::interface_version) return;
  throw Refusal{
      fmt::format("{} is built for version {} of the provider interface, but this weft ({}) has version {}: "
                  "build it again for this weft",
                  path, version, weft::version(), provider::interface_version)};
}

// The loader's text, without the path in front that the caller puts there itself.
std::string loader_text(const std::string& path) {
  const char* const raw = ::dlerror();
  const std::string text = raw == nullptr ? "unknown error of the dynamic loader" : raw;
  const std::string in_front = path + ": ";
  return text.starts_with(in_front) ? text.substr(in_front.size()) : text;
}

void* open_object(const std::string& path) {
  const SignalKeeper keeper;
  void* const object = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (object == nullptr) {
    const std::string text = loader_text(path);
    const bool is_library_missing = text.find("cannot open shared object file") != std::string::npos;
    throw Refusal{fmt::format("{} cannot be loaded: {}{}", path, text,
                              is_library_missing ? "; install the package that holds this library" : "")};
  }
  return object;
}

const provider::PluginDescriptor& read_descriptor(void* object, const std::string& path,
                                                  const std::string& name) {
  const void* const version = ::dlsym(object, "weft_provider_interface_version");
  void* const entry = ::dlsym(object, "weft_provider_v1");
  if (version == nullptr || entry == nullptr) {
    throw Refusal{fmt::format("{} is no weft plug-in: it does not export {}", path,
                              version == nullptr ? "weft_provider_interface_version" : "weft_provider_v1")};
  }
  check_version(path, *static_cast<const std::uint32_t*>(version));
  const auto get = reinterpret_cast<const provider::PluginDescriptor* (*)()>(entry);
  const provider::PluginDescriptor* const descriptor = get();
  if (descriptor == nullptr || descriptor->magic != provider::plugin_magic ||
      descriptor->size != sizeof(provider::PluginDescriptor) || descriptor->name == nullptr ||
      descriptor->version_text == nullptr || descriptor->instance == nullptr) {
    throw Refusal{fmt::format("{} has a damaged descriptor (weft_provider_v1)", path)};
  }
  check_version(path, descriptor->version);
  if (descriptor->name != name) {
    throw Refusal{fmt::format("{} calls its provider {}; the file must then be {}{}{}", path,
                              quoted(descriptor->name), file_prefix, one_line(descriptor->name),
                              file_suffix)};
  }
  return *descriptor;
}

void check_variables(const Plugin& plugin) {
  const std::string prefix = environment::provider_prefix(plugin.name);
  for (const provider::Variable& variable : plugin.variables) {
    if (variable.name.starts_with(prefix)) continue;
    throw Refusal{fmt::format("{} lists the environment variable {}; those of provider {} start with {}",
                              plugin.path, quoted(variable.name), plugin.name, prefix)};
  }
}

void load_file(Plugin& plugin) {
  const PluginFile file = inspect_plugin_file(plugin.path);
  if (!file.reason.empty()) throw Refusal{fmt::format("{}: {}", plugin.path, file.reason)};
  if (file.version) check_version(plugin.path, *file.version);
  const auto& descriptor = read_descriptor(open_object(plugin.path), plugin.path, plugin.name);
  provider::Provider* const made = descriptor.instance();
  if (made == nullptr) throw Refusal{fmt::format("{} gave no provider object", plugin.path)};
  plugin.variables = made->variables();
  check_variables(plugin);
  plugin.version = descriptor.version_text;
  plugin.host = std::make_shared<ProviderHost>(plugin.name, names_of(plugin.variables));
  plugin.provider = made;
}

}  // namespace

PluginLoader& PluginLoader::instance() {
  static PluginLoader& loader = *new PluginLoader;
  return loader;
}

bool PluginLoader::is_name(std::string_view name) noexcept {
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  return !name.empty() && is_letter(name.front()) && std::all_of(name.begin(), name.end(), [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || c == '-';
  });
}

std::vector<std::string> PluginLoader::folders() {
  std::vector<std::string> result;
  const auto add = [&](const files::path& folder) {
    std::error_code error;
    const std::string text = files::absolute(folder, error).lexically_normal().string();
    if (!error && std::find(result.begin(), result.end(), text) == result.end()) result.push_back(text);
  };
  for (const std::string& folder : environment::provider_path()) add(folder);
  if (const files::path own = own_folder(); !own.empty()) {
    add(own / "weft");                        // beside libweft.so
    add(own.parent_path() / "lib" / "weft");  // for a program in bin/ that holds the core itself
  }
  return result;
}

void PluginLoader::look() {
  // What is loaded stays, the rest is looked up afresh: folders and files may have changed.
  std::erase_if(plugins_, [](const auto& entry) { return !entry.second.is_loaded(); });
  for (const std::string& folder : folders()) {
    std::error_code error;
    files::directory_iterator entry(folder, error);
    for (; !error && entry != files::directory_iterator(); entry.increment(error)) {
      const std::string name = name_of(entry->path());
      if (name.empty()) continue;
      const std::string path = entry->path().string();
      if (!is_name(name)) {
        if (misnamed_.insert(path).second) {
          log(LogLevel::warning,
              "{} is passed over: {} is no provider's name (lower-case letters, digits, '-')", path,
              quoted(name));
        }
        continue;
      }
      Plugin plugin;
      plugin.name = name;
      plugin.path = path;
      plugins_.try_emplace(name, std::move(plugin));  // the first folder wins
    }
  }
}

std::vector<Plugin> PluginLoader::find() {
  const std::lock_guard lock(mutex_);
  look();
  std::vector<Plugin> result;
  for (const auto& [name, plugin] : plugins_) result.push_back(plugin);
  return result;
}

Plugin PluginLoader::load(std::string_view name) {
  const std::lock_guard lock(mutex_);
  if (const auto loaded = plugins_.find(name); loaded != plugins_.end() && loaded->second.is_loaded()) {
    return loaded->second;
  }
  look();
  const auto found = plugins_.find(name);
  if (found == plugins_.end()) {
    Plugin none;
    none.name = name;
    none.reason = "there is no such provider";
    return none;
  }
  Plugin plugin = found->second;
  try {
    load_file(plugin);
    found->second = plugin;
    log(LogLevel::debug, "loaded provider {} {} from {}", plugin.name, plugin.version, plugin.path);
  } catch (const Refusal& refusal) {
    plugin.reason = refusal.reason;
  } catch (const std::exception& error) {
    plugin.reason = fmt::format("{} cannot be loaded: {}", plugin.path, error.what());
  }
  return plugin;
}

}  // namespace weft::core
