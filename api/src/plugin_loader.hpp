// Finding and loading plug-ins (SEL-5, SEL-6).
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "host.hpp"
#include "weft/provider/provider.hpp"

namespace weft::core {

// One plug-in file, weft-provider-NAME.so, and what came of loading it.
struct Plugin {
  std::string name;
  std::string path;
  std::string version;                     // once loaded
  std::string reason;                      // why it could not be loaded; empty when loaded or not yet tried
  provider::Provider* provider = nullptr;  // once loaded; never destroyed
  std::vector<provider::Variable> variables;
  std::shared_ptr<ProviderHost> host;

  [[nodiscard]] bool is_loaded() const noexcept { return provider != nullptr; }
};

// One per process, never destroyed, because loaded plug-ins are never unloaded. Any thread. A plug-in is a
// value here: a snapshot that stays right, since what is loaded stays.
class PluginLoader {
 public:
  [[nodiscard]] static PluginLoader& instance();

  // The plug-ins in the folders as they are now, sorted by name, those already loaded among them.
  [[nodiscard]] std::vector<Plugin> find();
  // Loads it if it is not loaded yet. Never throws for a plug-in that cannot be loaded: Plugin::reason tells.
  // Nothing of that name: a Plugin with an empty path and a reason.
  [[nodiscard]] Plugin load(std::string_view name);

  // Where plug-ins are looked for, in this order.
  [[nodiscard]] static std::vector<std::string> folders();
  // Lower-case letters, digits and '-', a letter first.
  [[nodiscard]] static bool is_name(std::string_view name) noexcept;

 private:
  PluginLoader() = default;
  void look();

  std::mutex mutex_;
  std::map<std::string, Plugin, std::less<>> plugins_;
  std::set<std::string> misnamed_;  // files whose names were complained about
};

}  // namespace weft::core
