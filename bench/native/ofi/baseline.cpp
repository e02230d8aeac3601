// Bare libfabric, the floor that the libfabric provider is measured against: the same kind of endpoint over
// the same provider of libfabric.
#include <stdexcept>

#include "../../baselines.hpp"
#include "roles.hpp"

namespace perf::ofi {
namespace {

void check(const Workload& workload) {
  if (workload.endpoints > 1)
    throw std::runtime_error("bare libfabric: work over many endpoints is not written for it");
}

[[nodiscard]] bool is_ping_pong(const Workload& workload) {
  return workload.metric == Metric::latency && workload.level == Level::received;
}

std::unique_ptr<ServerRole> make_server(const Workload& workload, const Fabric& fabric) {
  check(workload);
  if (is_ping_pong(workload)) return make_latency_server(workload, fabric);
  if (workload.operation == perf::Operation::send) return make_stream_server(workload, fabric);
  return make_memory_server(workload, fabric);
}

std::unique_ptr<ClientRole> make_client(const Workload& workload, const Fabric& fabric,
                                        const std::string& address) {
  check(workload);
  if (is_ping_pong(workload)) return make_latency_client(workload, fabric, address);
  if (workload.operation == perf::Operation::send) return make_stream_client(workload, fabric, address);
  return make_memory_client(workload, fabric, address);
}

Contender contender(const Fabric& fabric) {
  return {"bare libfabric", [&fabric](const Workload& workload) { return make_server(workload, fabric); },
          [&fabric](const Workload& workload, const std::string& address) {
            return make_client(workload, fabric, address);
          },
          true};
}

const BaselineRegistration over_tcp({"ofi:tcp", contender(tcp)});
const BaselineRegistration over_shm({"ofi:shm", contender(shm)});
const BaselineRegistration over_verbs({"ofi:verbs", contender(verbs)});

}  // namespace
}  // namespace perf::ofi
