#include <nlohmann/json.hpp>

#include "advice.hpp"
#include "reports.hpp"
#include "words.hpp"

namespace info {
namespace {

using Json = nlohmann::ordered_json;

Json number_or_null(const std::optional<std::uint64_t>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json json_of(const weft::Limits& limits) {
  return {{"max_message", limits.max_message},
          {"max_transfer", limits.max_transfer},
          {"max_inline", limits.max_inline},
          {"max_segments", limits.max_segments},
          {"send_depth", limits.send_depth},
          {"receive_depth", limits.receive_depth},
          {"max_outstanding_reads", limits.max_outstanding_reads},
          {"unexpected_bytes", limits.unexpected_bytes}};
}

Json json_of(const weft::Attributes& attributes) {
  Json deviations = Json::array();
  for (const weft::Deviation& deviation : attributes.deviations) {
    deviations.push_back(
        {{"rule", deviation.rule}, {"reason", deviation.reason}, {"instead", deviation.instead}});
  }
  return {{"provider", attributes.provider},
          {"provider_version", attributes.provider_version},
          {"fabric", attributes.fabric},
          {"device", attributes.device},
          {"local_address", attributes.local_address},
          {"segment_size", attributes.segment_size},
          {"trust", word(attributes.trust)},
          {"trust_text", attributes.trust_text},
          {"atomic_scope", word(attributes.atomic_scope)},
          {"limits", json_of(attributes.limits)},
          {"max_private_data", attributes.max_private_data},
          {"max_key_size", attributes.max_key_size},
          {"deviations", deviations}};
}

template <class Mode>
Json json_of(const std::vector<Mode>& modes) {
  Json list = Json::array();
  for (const Mode mode : modes) list.push_back(word(mode));
  return list;
}

Json json_of(const OpenedFabric& fabric) {
  Json json{{"selector", fabric.selector}, {"opened", fabric.attributes.has_value()}};
  if (!fabric.problem.empty()) json["problem"] = fabric.problem;
  if (fabric.attributes) json["attributes"] = json_of(*fabric.attributes);
  json["thread_modes"] = json_of(fabric.thread_modes);
  json["progress_modes"] = json_of(fabric.progress_modes);
  return json;
}

Json json_of(const Provider& provider) {
  const weft::ProviderReport& report = provider.report;
  Json json{{"name", report.name},       {"version", report.version},     {"path", report.path},
            {"loaded", report.loaded},   {"decorator", report.decorator}, {"reason", report.reason},
            {"advice", provider.advice}, {"fabrics", Json::array()},      {"opened", Json::array()}};
  for (const weft::FabricReport& fabric : report.fabrics) {
    json["fabrics"].push_back({{"name", fabric.name},
                               {"device", fabric.device},
                               {"usable", fabric.usable},
                               {"reason", fabric.reason},
                               {"priority", fabric.priority},
                               {"trust", word(fabric.trust)}});
  }
  for (const OpenedFabric& fabric : provider.opened) json["opened"].push_back(json_of(fabric));
  return json;
}

Json json_of(const Machine& machine) {
  Json json{
      {"locked_memory",
       {{"now", number_or_null(machine.locked_memory.now)},
        {"most", number_or_null(machine.locked_memory.most)}}},
      {"open_files",
       {{"now", number_or_null(machine.open_files.now)}, {"most", number_or_null(machine.open_files.most)}}},
      {"rdma_devices", Json::array()},
      {"obstacles", Json::array()}};
  for (const RdmaDevice& device : machine.rdma_devices) {
    json["rdma_devices"].push_back({{"name", device.name},
                                    {"node", device.node},
                                    {"link_layer", device.link_layer},
                                    {"state", device.state},
                                    {"permitted", device.permitted}});
  }
  for (const Advice& advice : obstacles(machine)) {
    json["obstacles"].push_back({{"finding", advice.finding}, {"remedy", advice.remedy}});
  }
  return json;
}

}  // namespace

std::string json_report(const Findings& findings) {
  Json json{{"version", findings.version}, {"plugin_folders", findings.plugin_folders}};
  json["choice"] = {
      {"provider", findings.choice.attributes ? Json(findings.choice.attributes->provider) : Json(nullptr)},
      {"problem", findings.choice.problem}};
  json["providers"] = Json::array();
  for (const Provider& provider : findings.providers) json["providers"].push_back(json_of(provider));
  json["not_installed"] = Json::array();
  for (const std::string& name : findings.missing) {
    json["not_installed"].push_back({{"name", name}, {"package", package_of(name)}});
  }
  json["machine"] = json_of(findings.machine);
  json["variables"] = Json::array();
  for (const weft::VariableReport& variable : findings.variables) {
    json["variables"].push_back({{"name", variable.name},
                                 {"default", variable.default_value},
                                 {"meaning", variable.meaning},
                                 {"value", variable.is_set ? Json(variable.value) : Json(nullptr)}});
  }
  json["warnings"] = findings.warnings;
  // What a variable holds need not be text.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace info
