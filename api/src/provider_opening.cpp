#include "provider_opening.hpp"

#include <fmt/format.h>

#include <utility>

#include "plugin_loader.hpp"
#include "signal_keeper.hpp"
#include "text.hpp"
#include "weft/status.hpp"

namespace weft::core {
namespace {

std::vector<std::string> existing_names() {
  std::vector<std::string> names;
  for (const Plugin& plugin : PluginLoader::instance().find()) names.push_back(plugin.name);
  return names;
}

Plugin load_or_throw(const std::string& name) {
  Plugin plugin = PluginLoader::instance().load(name);
  if (plugin.is_loaded()) return plugin;
  if (plugin.path.empty()) {
    throw Error(Status::not_found, plugin.reason + suggestion(name, existing_names()));
  }
  throw Error(Status::unavailable, plugin.reason);
}

// A provider throws Error; whatever else comes out of a plug-in becomes one.
std::unique_ptr<provider::Context> open_one(const Plugin& plugin, const ProviderName& name,
                                            provider::OpenRequest request,
                                            std::unique_ptr<provider::Context> inner) {
  request.beneath = name.beneath;
  std::unique_ptr<provider::Context> context;
  try {
    const SignalKeeper keeper;
    context = plugin.provider->open(*plugin.host, request, std::move(inner));
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(Status::system_error, fmt::format("it failed: {}", error.what()));
  }
  if (!context) throw Error(Status::unavailable, "it opened nothing and gives no reason");
  return context;
}

}  // namespace

OpenedChoice open_choice(const Choice& choice, const provider::OpenRequest& request) {
  // All are looked up before anything is opened, so that a mistake costs no device.
  const Plugin base = load_or_throw(choice.base.name);
  if (base.provider->is_decorator()) {
    throw Error(Status::invalid_argument,
                fmt::format("{} is a decorator and wraps another provider: write {}+NAME", base.name,
                            choice.to_string()));
  }
  std::vector<Plugin> decorators;
  for (const ProviderName& name : choice.decorators) {
    try {
      decorators.push_back(load_or_throw(name.name));
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("decorator {}: {}", quoted(name.name), error.what()));
    }
    if (!decorators.back().provider->is_decorator()) {
      throw Error(Status::invalid_argument,
                  fmt::format("{} is no decorator and cannot stand in front of '+'; alternatives are "
                              "separated by ','",
                              quoted(name.name)));
    }
  }

  OpenedChoice opened{open_one(base, choice.base, request, nullptr), base.name, base.version};
  for (std::size_t i = decorators.size(); i-- > 0;) {
    opened.context = open_one(decorators[i], choice.decorators[i], request, std::move(opened.context));
    opened.name = decorators[i].name + '+' + opened.name;
  }
  return opened;
}

}  // namespace weft::core
