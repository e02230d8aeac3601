// Bare UCX, the floor that the UCX provider is measured against: the same lanes in the same error mode.
#include <stdexcept>

#include "../../baselines.hpp"
#include "roles.hpp"

namespace perf::ucx {
namespace {

void check(const Workload& workload) {
  if (workload.endpoints > 1)
    throw std::runtime_error("bare UCX: work over many endpoints is not written for it");
}

std::unique_ptr<ServerRole> make_server(const Workload& workload, Lanes lanes) {
  check(workload);
  const bool half_trip = workload.metric == Metric::latency && workload.level == Level::received;
  if (half_trip) return make_latency_server(workload, lanes);
  if (workload.operation == Operation::send) return make_stream_server(workload, lanes);
  return make_memory_server(workload, lanes);
}

std::unique_ptr<ClientRole> make_client(const Workload& workload, Lanes lanes, const std::string& address) {
  check(workload);
  const bool half_trip = workload.metric == Metric::latency && workload.level == Level::received;
  if (half_trip) return make_latency_client(workload, lanes, address);
  if (workload.operation == Operation::send) return make_stream_client(workload, lanes, address);
  return make_memory_client(workload, lanes, address);
}

Contender contender(Lanes lanes) {
  return {"bare UCX", [lanes](const Workload& workload) { return make_server(workload, lanes); },
          [lanes](const Workload& workload, const std::string& address) {
            return make_client(workload, lanes, address);
          },
          true};
}

const BaselineRegistration over_tcp({"ucx:tcp", contender(Lanes::tcp)});
const BaselineRegistration over_shm({"ucx:shm", contender(Lanes::shm)});
const BaselineRegistration over_rc({"ucx:rc", contender(Lanes::rc)});

}  // namespace
}  // namespace perf::ucx
