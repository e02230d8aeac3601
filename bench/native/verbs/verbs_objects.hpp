// Verbs objects that free themselves, and the device with what is asked of it once.
#pragma once

#include <infiniband/verbs.h>

#include <memory>
#include <string>

#include "options.hpp"

namespace weft::native {

template <auto destroy>
struct Destroyer {
  template <typename Object>
  void operator()(Object* object) const noexcept {
    destroy(object);
  }
};

using DeviceContext = std::unique_ptr<ibv_context, Destroyer<&ibv_close_device>>;
using ProtectionDomain = std::unique_ptr<ibv_pd, Destroyer<&ibv_dealloc_pd>>;
using CompletionQueue = std::unique_ptr<ibv_cq, Destroyer<&ibv_destroy_cq>>;
using QueuePair = std::unique_ptr<ibv_qp, Destroyer<&ibv_destroy_qp>>;
using MemoryRegion = std::unique_ptr<ibv_mr, Destroyer<&ibv_dereg_mr>>;

// Throws with `what` and the system's reason when `object` is null.
void require_object(const void* object, const std::string& what);
// Throws with `what` and the reason when a verbs call returned an error number.
void require_success(int error, const std::string& what);

struct Device {
  // Without a name: the first device. With a negative GID index: the RoCE v2 entry with an IPv4 address, if
  // there is one.
  explicit Device(const Options& options);

  std::string name;
  DeviceContext context;
  ProtectionDomain domain;
  ibv_device_attr attributes{};
  ibv_port_attr port{};
  ibv_gid gid{};
  int gid_index = 0;
  static constexpr std::uint8_t port_number = 1;
};

}  // namespace weft::native
