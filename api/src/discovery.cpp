#include "weft/discovery.hpp"

#include "environment.hpp"
#include "plugin_loader.hpp"
#include "survey.hpp"

namespace weft {
namespace {

VariableReport report_on(std::string name, std::string default_value, std::string meaning) {
  VariableReport report{std::move(name), std::move(default_value), std::move(meaning), {}, false};
  if (auto value = core::environment::value(report.name)) {
    report.value = std::move(*value);
    report.is_set = true;
  }
  return report;
}

}  // namespace

std::vector<ProviderReport> list_providers() { return core::survey_all(); }

std::vector<std::string> plugin_folders() { return core::PluginLoader::folders(); }

std::vector<VariableReport> list_variables() {
  std::vector<VariableReport> result;
  for (const core::environment::Entry& entry : core::environment::table()) {
    result.push_back(
        report_on(std::string(entry.name), std::string(entry.default_value), std::string(entry.meaning)));
  }
  for (const core::Plugin& plugin : core::PluginLoader::instance().find()) {
    for (const provider::Variable& variable : plugin.variables) {
      result.push_back(report_on(variable.name, variable.default_value, variable.meaning));
    }
  }
  return result;
}

}  // namespace weft
