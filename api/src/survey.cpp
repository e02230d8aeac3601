#include "survey.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "signal_keeper.hpp"
#include "text.hpp"

namespace weft::core {

ProviderReport survey(const std::string& name) {
  const Plugin plugin = PluginLoader::instance().load(name);
  ProviderReport result;
  result.name = plugin.name;
  result.version = plugin.version;
  result.path = plugin.path;
  result.loaded = plugin.is_loaded();
  result.reason = plugin.reason;
  if (!plugin.is_loaded()) return result;
  result.decorator = plugin.provider->is_decorator();
  try {
    const SignalKeeper keeper;
    result.fabrics = plugin.provider->probe(*plugin.host);
  } catch (const std::exception& error) {
    // Not allowed, but a plug-in that breaks this rule must not take the others with it.
    FabricReport failed;
    failed.reason = fmt::format("its probe failed: {}", error.what());
    result.fabrics.push_back(std::move(failed));
  }
  return result;
}

std::vector<ProviderReport> survey_all() {
  std::vector<ProviderReport> result;
  for (const Plugin& plugin : PluginLoader::instance().find()) result.push_back(survey(plugin.name));
  return result;
}

std::string reason_not_to_run(const ProviderReport& report) {
  if (!report.loaded) return report.reason;
  std::vector<std::string> reasons;
  for (const FabricReport& fabric : report.fabrics) {
    if (fabric.usable) continue;
    const std::string reason = fabric.reason.empty() ? "it gives no reason" : fabric.reason;
    std::string text = fabric.name.empty() ? reason : fmt::format("{}: {}", fabric.name, reason);
    if (std::find(reasons.begin(), reasons.end(), text) == reasons.end()) reasons.push_back(std::move(text));
  }
  return joined(reasons, "; ", "it reports no fabric");
}

std::string summary(const ProviderReport& report) {
  if (!report.loaded) return "cannot run: " + report.reason;
  if (report.decorator) return "decorator";
  std::vector<std::string> names;
  bool is_usable = false;
  for (const FabricReport& fabric : report.fabrics) {
    if (!fabric.usable) continue;
    is_usable = true;
    const bool is_listed = std::find(names.begin(), names.end(), fabric.name) != names.end();
    if (!fabric.name.empty() && !is_listed) names.push_back(fabric.name);
  }
  if (!is_usable) return "cannot run: " + reason_not_to_run(report);
  return names.empty() ? "can run" : "can run: " + joined(names);
}

}  // namespace weft::core
