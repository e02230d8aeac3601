// Bare non-blocking sockets, the floor that the TCP provider is measured against.
#include "../../baselines.hpp"
#include "roles.hpp"

namespace perf::sockets {
namespace {

std::unique_ptr<ServerRole> make_server(const Workload& workload) {
  if (workload.endpoints > 1) return make_crowd_server(workload);
  if (workload.metric == Metric::latency) return make_latency_server(workload);
  if (workload.operation == Operation::read) return make_read_server(workload);
  return make_stream_server(workload);
}

std::unique_ptr<ClientRole> make_client(const Workload& workload, const std::string& address) {
  if (workload.endpoints > 1) return make_crowd_client(workload, address);
  if (workload.metric == Metric::latency) return make_latency_client(workload, address);
  if (workload.operation == Operation::read) return make_read_client(workload, address);
  return make_stream_client(workload, address);
}

const BaselineRegistration registration({"tcp", {"bare sockets", make_server, make_client}});

}  // namespace
}  // namespace perf::sockets
