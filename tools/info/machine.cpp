#include "machine.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

namespace info {
namespace {

namespace files = std::filesystem;

// Registered memory is locked memory; below this even a small program soon meets the limit.
constexpr std::uint64_t modest_locked_memory = std::uint64_t{64} << 20U;
constexpr std::uint64_t modest_open_files = 4096;

ProcessLimit limit_of(int resource) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0) return {};
  const auto value = [](rlim_t number) -> std::optional<std::uint64_t> {
    if (number == RLIM_INFINITY) return {};
    return number;
  };
  return {value(limit.rlim_cur), value(limit.rlim_max)};
}

std::string first_line(const files::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

std::vector<files::path> entries(const files::path& folder) {
  std::vector<files::path> found;
  std::error_code error;
  for (files::directory_iterator entry(folder, error); !error && entry != files::directory_iterator();
       entry.increment(error)) {
    found.push_back(entry->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

// The node whose kernel entry names the device.
std::string node_of(const files::path& root, const std::string& device) {
  for (const files::path& entry : entries(root / "sys/class/infiniband_verbs")) {
    if (first_line(entry / "ibdev") == device) return "/dev/infiniband/" + entry.filename().string();
  }
  return {};
}

RdmaDevice device_at(const files::path& root, const files::path& entry) {
  RdmaDevice device;
  device.name = entry.filename();
  device.node = node_of(root, device.name);
  if (!device.node.empty()) {
    device.permitted = ::access((root / device.node.substr(1)).c_str(), R_OK | W_OK) == 0;
  }
  const auto ports = entries(entry / "ports");
  if (!ports.empty()) {
    device.link_layer = first_line(ports.front() / "link_layer");
    const std::string state = first_line(ports.front() / "state");  // "4: ACTIVE"
    const auto colon = state.find(": ");
    device.state = colon == std::string::npos ? state : state.substr(colon + 2);
  }
  return device;
}

void add_device_obstacles(std::vector<Advice>& found, const RdmaDevice& device) {
  if (device.node.empty()) {
    found.push_back(
        {fmt::format("the RDMA device {} has no node under /dev/infiniband", device.name),
         "load the kernel module ib_uverbs (modprobe ib_uverbs); in a container, pass /dev/infiniband "
         "in (docker run --device=/dev/infiniband …)"});
  } else if (!device.permitted) {
    found.push_back(
        {fmt::format("the RDMA device {} cannot be opened: no permission for {}", device.name, device.node),
         fmt::format("let this user read and write it: join the group that owns it (ls -l {}), or have "
                     "an udev rule set MODE=\"0666\"",
                     device.node)});
  }
  if (!device.state.empty() && device.state != "ACTIVE") {
    found.push_back({fmt::format("the port of the RDMA device {} is {}", device.name, device.state),
                     device.link_layer == "Ethernet" ? "set the interface beneath it up (ip link set NAME up)"
                                                     : "check the cable and the subnet manager"});
  }
}

}  // namespace

Machine look_at_machine(const std::string& root) {
  Machine machine;
  machine.locked_memory = limit_of(RLIMIT_MEMLOCK);
  machine.open_files = limit_of(RLIMIT_NOFILE);
  for (const files::path& entry : entries(files::path(root) / "sys/class/infiniband")) {
    machine.rdma_devices.push_back(device_at(root, entry));
  }
  return machine;
}

std::vector<Advice> obstacles(const Machine& machine) {
  std::vector<Advice> found;
  for (const RdmaDevice& device : machine.rdma_devices) add_device_obstacles(found, device);
  const auto locked = machine.locked_memory.now;
  if (!machine.rdma_devices.empty() && locked && *locked < modest_locked_memory) {
    found.push_back(
        {fmt::format(
             "locked memory is limited to {}, and all memory registered with an RDMA device is locked",
             bytes_text(locked)),
         fmt::format(
             "raise it: `ulimit -l unlimited` in this shell{}; for good, `* - memlock unlimited` in a file "
             "under /etc/security/limits.d, or LimitMEMLOCK=infinity in a systemd unit",
             machine.locked_memory.most
                 ? fmt::format(" (its own limit is {})", bytes_text(machine.locked_memory.most))
                 : "")});
  }
  const auto most_files = machine.open_files.most;
  if (most_files && *most_files < modest_open_files) {
    found.push_back(
        {fmt::format("at most {} files can be open, and each connection needs one or more", *most_files),
         "raise it for programs with many connections: `* - nofile 65536` in a file under "
         "/etc/security/limits.d, or LimitNOFILE=65536 in a systemd unit"});
  }
  return found;
}

std::string bytes_text(std::optional<std::uint64_t> bytes) {
  if (!bytes) return "unlimited";
  constexpr std::array<const char*, 6> units = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  std::uint64_t value = *bytes;
  while (value >= 1024 && value % 1024 == 0 && unit + 1 < units.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{} {}", value, units[unit]);
}

}  // namespace info
