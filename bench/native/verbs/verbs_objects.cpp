#include "verbs_objects.hpp"

#include <array>
#include <cerrno>
#include <stdexcept>
#include <system_error>

namespace weft::native {
namespace {

DeviceContext open_device(const std::string& wanted, std::string& name) {
  int count = 0;
  const std::unique_ptr<ibv_device*, Destroyer<&ibv_free_device_list>> devices(ibv_get_device_list(&count));
  std::string seen;
  for (int index = 0; index < count; ++index) {
    ibv_device* device = devices.get()[index];
    const std::string device_name = ibv_get_device_name(device);
    seen += " " + device_name;
    if (!wanted.empty() && device_name != wanted) continue;
    name = device_name;
    DeviceContext context(ibv_open_device(device));
    require_object(context.get(), "cannot open RDMA device " + device_name);
    return context;
  }
  throw std::runtime_error("there is no RDMA device " + (wanted.empty() ? std::string("at all") : wanted) +
                           "; there are:" + (seen.empty() ? " none" : seen));
}

bool is_ipv4_mapped(const ibv_gid& gid) {
  static constexpr std::array<std::uint8_t, 12> mapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::equal(mapped.begin(), mapped.end(), std::begin(gid.raw));
}

int choose_gid(ibv_context* context) {
  std::array<ibv_gid_entry, 256> entries{};
  const ssize_t count = ibv_query_gid_table(context, entries.data(), entries.size(), 0);
  int chosen = 0;
  bool has_address = false;
  for (ssize_t index = 0; index < count; ++index) {
    const ibv_gid_entry& entry = entries[static_cast<std::size_t>(index)];
    if (entry.gid_type != IBV_GID_TYPE_ROCE_V2 || entry.port_num != Device::port_number || has_address)
      continue;
    chosen = static_cast<int>(entry.gid_index);
    has_address = is_ipv4_mapped(entry.gid);
  }
  return chosen;
}

}  // namespace

void require_object(const void* object, const std::string& what) {
  if (object == nullptr) throw std::system_error(errno, std::generic_category(), what);
}

void require_success(int error, const std::string& what) {
  if (error != 0) throw std::system_error(error, std::generic_category(), what);
}

Device::Device(const Options& options) : context(open_device(options.device, name)) {
  domain.reset(ibv_alloc_pd(context.get()));
  require_object(domain.get(), "cannot allocate a protection domain on " + name);
  require_success(ibv_query_device(context.get(), &attributes), "cannot query device " + name);
  require_success(ibv_query_port(context.get(), port_number, &port), "cannot query the port of " + name);
  if (port.state != IBV_PORT_ACTIVE) {
    throw std::runtime_error("the port of " + name + " is not active (" + ibv_port_state_str(port.state) +
                             "); bring its network interface up");
  }
  gid_index = options.gid_index >= 0 ? options.gid_index : choose_gid(context.get());
  require_success(ibv_query_gid(context.get(), port_number, gid_index, &gid),
                  "cannot read GID index " + std::to_string(gid_index) + " of " + name);
}

}  // namespace weft::native
