#include "transports.hpp"

#include <uct/api/uct.h>

#include <algorithm>
#include <memory>

#include "lanes.hpp"

namespace weft::ucx {

namespace {

void list_of(uct_component_h component, const uct_md_resource_desc_t& domain,
             std::vector<Transport>& transports) {
  uct_md_config_t* config = nullptr;
  if (uct_md_config_read(component, nullptr, nullptr, &config) != UCS_OK) return;
  uct_md_h opened = nullptr;
  const ucs_status_t code = uct_md_open(component, domain.md_name, config, &opened);
  uct_config_release(config);
  if (code != UCS_OK) return;
  uct_tl_resource_desc_t* found = nullptr;
  unsigned count = 0;
  if (uct_md_query_tl_resources(opened, &found, &count) == UCS_OK) {
    for (unsigned i = 0; i < count; ++i) transports.push_back({found[i].tl_name, found[i].dev_name});
    uct_release_tl_resource_list(found);
  }
  uct_md_close(opened);
}

void list_of(uct_component_h component, std::vector<Transport>& transports) {
  uct_component_attr_t attributes{};
  attributes.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT;
  if (uct_component_query(component, &attributes) != UCS_OK) return;
  std::vector<uct_md_resource_desc_t> domains(attributes.md_resource_count);
  attributes.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
  attributes.md_resources = domains.data();
  if (domains.empty() || uct_component_query(component, &attributes) != UCS_OK) return;
  for (const uct_md_resource_desc_t& domain : domains) list_of(component, domain, transports);
}

}  // namespace

std::vector<Transport> list_transports() {
  std::vector<Transport> transports;
  uct_component_h* components = nullptr;
  unsigned count = 0;
  if (uct_query_components(&components, &count) != UCS_OK) return transports;
  for (unsigned i = 0; i < count; ++i) list_of(components[i], transports);
  uct_release_component_list(components);
  return transports;
}

std::string devices_of(const std::vector<Transport>& transports, const std::string& list) {
  const std::vector<std::string> names = split_list(list);
  std::vector<std::string> devices;
  for (const Transport& transport : transports) {
    if (std::find(names.begin(), names.end(), transport.name) == names.end()) continue;
    if (std::find(devices.begin(), devices.end(), transport.device) == devices.end())
      devices.push_back(transport.device);
  }
  return join_list(devices, ", ");
}

}  // namespace weft::ucx
