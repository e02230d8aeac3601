// The devices themselves: names, numbers and limits.
#include <endian.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "context.hpp"
#include "faults.hpp"

namespace fakeverbs {
namespace {

constexpr std::uint64_t first_guid = 0x0200'00ff'fe00'0001;

std::vector<Device*> make_devices() {
  std::vector<Device*> devices;
  for (const auto& each : settings().devices) {
    auto* const device = new Device{};
    device->settings = &each;
    device->index = static_cast<std::uint32_t>(devices.size());
    device->guid = htobe64(first_guid + devices.size());
    device->node_type = IBV_NODE_CA;
    device->transport_type = IBV_TRANSPORT_IB;
    std::snprintf(device->name, sizeof device->name, "%s", each.name.c_str());
    std::snprintf(device->dev_name, sizeof device->dev_name, "fakeverbs%u", device->index);
    devices.push_back(device);
  }
  return devices;
}

const std::vector<Device*>& devices() {
  static const auto* const all = new std::vector<Device*>(make_devices());
  return *all;
}

}  // namespace

Device& device(std::size_t index) { return *devices()[index]; }

std::size_t device_count() { return devices().size(); }

void describe(const Context& context, ibv_device_attr& attributes) {
  const Limits& limits = faults().plan.limits;
  const auto signed_limit = [](std::uint32_t limit) { return static_cast<int>(limit); };
  attributes = {};
  std::snprintf(attributes.fw_ver, sizeof attributes.fw_ver, "fakeverbs");
  attributes.node_guid = attributes.sys_image_guid = context.device().guid;
  attributes.max_mr_size = UINT64_MAX;
  attributes.page_size_cap = 0xfffff000;
  attributes.max_qp = signed_limit(std::min(limits.queue_pairs, max_queue_pairs));
  attributes.max_qp_wr = signed_limit(limits.queue_entries);
  attributes.device_cap_flags = IBV_DEVICE_RC_RNR_NAK_GEN;
  attributes.max_sge = attributes.max_sge_rd = signed_limit(limits.segments);
  attributes.max_cq = 1 << 16;
  attributes.max_cqe = signed_limit(limits.completion_entries);
  attributes.max_mr = signed_limit(max_regions - 1);
  attributes.max_pd = 1 << 16;
  attributes.max_qp_rd_atom = attributes.max_qp_init_rd_atom = signed_limit(limits.reads);
  attributes.max_res_rd_atom = attributes.max_qp_rd_atom * attributes.max_qp;
  attributes.atomic_cap = limits.atomics ? IBV_ATOMIC_HCA : IBV_ATOMIC_NONE;
  attributes.max_srq = 1 << 16;
  attributes.max_srq_wr = signed_limit(limits.queue_entries);
  attributes.max_srq_sge = signed_limit(limits.segments);
  attributes.max_pkeys = 1;
  attributes.phys_port_cnt = 1;
}

void describe(const Context& context, ibv_port_attr& attributes) {
  attributes = {};
  attributes.state = context.port_is_down() ? IBV_PORT_DOWN : IBV_PORT_ACTIVE;
  attributes.max_mtu = attributes.active_mtu = IBV_MTU_4096;
  attributes.gid_tbl_len = static_cast<int>(context.device().settings->gids.size());
  attributes.port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS;
  attributes.max_msg_sz = faults().plan.limits.message_bytes;
  attributes.pkey_tbl_len = 1;
  attributes.active_width = 2;  // 4 lanes
  attributes.active_speed = 32;
  attributes.phys_state = context.port_is_down() ? 3 : 5;  // disabled, link up
  attributes.link_layer = IBV_LINK_LAYER_ETHERNET;
}

}  // namespace fakeverbs
