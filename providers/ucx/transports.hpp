// The transports that UCX has on this machine, with their devices.
#pragma once

#include <string>
#include <vector>

namespace weft::ucx {

struct Transport {
  std::string name;    // as UCX_TLS takes it: "tcp", "posix", "rc_verbs"
  std::string device;  // as UCX_NET_DEVICES takes it: "lo", "mlx5_0:1", "memory"
};

// Each device is opened for it. What UCX cannot open is left out.
[[nodiscard]] std::vector<Transport> list_transports();

// "lo, eth0": the devices of all transports that a list as UCX_TLS takes it names, each once.
[[nodiscard]] std::string devices_of(const std::vector<Transport>& transports, const std::string& list);

}  // namespace weft::ucx
