// UCX opened with a list of lanes.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "handles.hpp"
#include "lanes.hpp"
#include "rdma_device.hpp"
#include "weft/provider/provider.hpp"

namespace weft::ucx {

struct Library {
  const Lanes* lanes = nullptr;
  std::string transports;  // what UCX may use: the lanes, as far as UCX_TLS lets them
  std::string devices;     // of those transports
  RdmaDevice rdma;         // the one of rc; without a name otherwise
  ContextHandle context;
};

// Throws Error: unavailable when no such transport is there or UCX_TLS forbids them; invalid_argument for a
// variable that makes no sense. `device`: an interface for tcp, or one or a device for rc; empty:
// UCX_NET_DEVICES, or any. `address`: a sockaddr that the device of rc must have; empty: it may be any.
[[nodiscard]] Library open_library(
    provider::Host& host, const Lanes& lanes, std::string_view device,
    std::span<const std::byte> address = {},
    std::chrono::milliseconds peer_timeout = provider::OpenRequest{}.peer_timeout);

// The interface of this host that has this address (a sockaddr); empty when none has.
[[nodiscard]] std::string interface_with(std::span<const std::byte> address);

// The worker's thread mode is UCS_THREAD_MODE_SERIALIZED: the helper comes in beside the program, never at
// the same time (THR-2). `number`: tells peers which worker connects, through a listener. The caller destroys
// it.
[[nodiscard]] ucp_worker_h make_worker(ucp_context_h context, std::uint64_t number = 0);

// "0.1.0 (UCX 1.13.1)": with the version of the library that runs.
[[nodiscard]] const char* version_text();

inline constexpr auto hooks_variable = "WEFT_UCX_MEMORY_HOOKS";

}  // namespace weft::ucx
