#include "harness/discovery.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "harness/fork_server.hpp"
#include "harness/network.hpp"

namespace conformance {
namespace {

using Json = nlohmann::json;

Json describe_usable(const std::string& selector, std::string& local_address) {
  Json deviations = Json::object();
  weft::ContextOptions options;
  options.provider = selector;
  const weft::Context context = weft::Context::open(options);
  local_address = context.attributes().local_address;
  for (const weft::Deviation& deviation : context.attributes().deviations) {
    deviations[deviation.rule] = deviation.instead + " (" + deviation.reason + ")";
  }
  return deviations;
}

// In a process of its own: the runner never loads a provider.
void ask(Channel& control, const std::string&) {
  Json found = Json::array();
  for (const weft::ProviderReport& provider : weft::list_providers()) {
    if (!provider.loaded) {
      found.push_back(
          {{"provider", provider.name}, {"fabric", ""}, {"usable", false}, {"reason", provider.reason}});
    }
    for (const weft::FabricReport& fabric : provider.fabrics) {
      found.push_back({{"provider", provider.name},
                       {"fabric", fabric.name},
                       {"usable", fabric.usable},
                       {"reason", fabric.reason}});
    }
  }
  control.put(Channel::Kind::finished, found.dump());
}

// The deviations of one fabric; opening it is also the proof that it can be used.
void ask_one(Channel& control, const std::string& selector) {
  Json answer;
  try {
    std::string local_address;
    answer = {{"usable", true}, {"deviations", describe_usable(selector, local_address)}};
    answer["local_address"] = local_address;
  } catch (const weft::Error& error) {
    answer = {{"usable", false}, {"reason", error.what()}};
  }
  control.put(Channel::Kind::finished, answer.dump());
}

Json answer_of(ProcessBody body, const std::string& arguments) {
  Process process = start_process(body, arguments);
  const auto answer = process.control.ending(Channel::Kind::finished, 60s);
  const auto exited = process.control.ending(Channel::Kind::exited, 10s);
  if (!answer) {
    throw std::runtime_error("asking for the providers failed: the process " +
                             (exited ? exit_in_words(*exited) : "did not answer"));
  }
  return Json::parse(*answer);
}

// Of the machine, asked in a process that may leave its network.
void ask_for_obstacle(Channel& control, const std::string&) {
  const Json answer = obstacle_to_networks();
  control.put(Channel::Kind::finished, answer.dump());
}

Found examined(const std::string& provider, const std::string& fabric) {
  Found found{.provider = provider,
              .fabric = fabric,
              .usable = false,
              .reason = {},
              .local_address = {},
              .deviations = {}};
  const Json answer = answer_of(ask_one, found.selector());
  found.usable = answer.at("usable");
  found.reason = answer.value("reason", "");
  found.local_address = answer.value("local_address", "");
  if (found.usable) found.deviations = answer.at("deviations").get<std::map<std::string, std::string>>();
  return found;
}

}  // namespace

std::string obstacle_to_networks(const Found& found) {
  static const std::string of_the_machine = answer_of(ask_for_obstacle, {});
  if (!of_the_machine.empty()) return of_the_machine;
  if (found.local_address == "any" || found.local_address.empty()) return {};
  return "its device is at " + found.local_address +
         ", which stays in this machine's network; such a peer needs a second machine";
}

std::vector<Found> discover(const Options& options) {
  std::vector<Found> chosen;
  if (!options.providers.empty()) {
    for (const std::string& name : options.providers) {
      const std::size_t colon = name.find(':');
      chosen.push_back(
          examined(name.substr(0, colon), colon == std::string::npos ? "" : name.substr(colon + 1)));
    }
    return chosen;
  }
  std::vector<std::string> names;
  for (const Json& report : answer_of(ask, {})) {
    if (!report.at("usable").get<bool>()) continue;
    Found found = examined(report.at("provider"), report.at("fabric"));
    // One fabric may be reported once per device.
    if (std::find(names.begin(), names.end(), found.selector()) != names.end()) continue;
    names.push_back(found.selector());
    chosen.push_back(std::move(found));
  }
  return chosen;
}

}  // namespace conformance
