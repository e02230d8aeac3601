// The workloads on bare libfabric, one pair of makers per kind of work.
#pragma once

#include <memory>
#include <string>

#include "../../role.hpp"
#include "link.hpp"

namespace perf::ofi {

/// Ping-pong of messages, or of writes that are known to be done and then told of by a message.
std::unique_ptr<ServerRole> make_latency_server(const Workload& workload, const Fabric& fabric);
std::unique_ptr<ClientRole> make_latency_client(const Workload& workload, const Fabric& fabric,
                                                const std::string& address);

/// Messages one way, counted by the peer.
std::unique_ptr<ServerRole> make_stream_server(const Workload& workload, const Fabric& fabric);
std::unique_ptr<ClientRole> make_stream_client(const Workload& workload, const Fabric& fabric,
                                               const std::string& address);

/// Writes or reads that the initiator knows to be done.
std::unique_ptr<ServerRole> make_memory_server(const Workload& workload, const Fabric& fabric);
std::unique_ptr<ClientRole> make_memory_client(const Workload& workload, const Fabric& fabric,
                                               const std::string& address);

}  // namespace perf::ofi
