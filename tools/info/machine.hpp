// What the machine allows, as far as fabrics care: limits of the process, RDMA devices, who may open them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace info {

struct ProcessLimit {
  std::optional<std::uint64_t> now;  // empty: unlimited
  std::optional<std::uint64_t> most;
};

// An RDMA device as the kernel shows it.
struct RdmaDevice {
  std::string name;        // "mlx5_0"
  std::string node;        // "/dev/infiniband/uverbs0"; empty when there is none
  std::string link_layer;  // of its first port: "Ethernet", "InfiniBand"
  std::string state;       // of its first port: "ACTIVE", "DOWN"
  bool permitted = false;  // this user may open the node
};

struct Machine {
  ProcessLimit locked_memory;  // bytes
  ProcessLimit open_files;
  std::vector<RdmaDevice> rdma_devices;
};

// `root` is "/" but in tests.
[[nodiscard]] Machine look_at_machine(const std::string& root);

struct Advice {
  std::string finding;  // "locked memory is limited to 64 KiB"
  std::string remedy;   // "…; to raise it …"
};

// What stands in the way on this machine, with what to do about it.
[[nodiscard]] std::vector<Advice> obstacles(const Machine& machine);

// "8 MiB", "unlimited".
[[nodiscard]] std::string bytes_text(std::optional<std::uint64_t> bytes);

}  // namespace info
