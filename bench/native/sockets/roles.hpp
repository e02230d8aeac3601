// The workloads on bare sockets, one pair of makers per kind of work.
#pragma once

#include <memory>
#include <string>

#include "../../role.hpp"

namespace perf::sockets {

/// Ping-pong.
std::unique_ptr<ServerRole> make_latency_server(const Workload& workload);
std::unique_ptr<ClientRole> make_latency_client(const Workload& workload, const std::string& address);

/// Ping-pong over many connections.
std::unique_ptr<ServerRole> make_crowd_server(const Workload& workload);
std::unique_ptr<ClientRole> make_crowd_client(const Workload& workload, const std::string& address);

/// Messages one way, acknowledged once at the end: send and write, rates and bandwidths.
std::unique_ptr<ServerRole> make_stream_server(const Workload& workload);
std::unique_ptr<ClientRole> make_stream_client(const Workload& workload, const std::string& address);

/// Requests one way, bytes back: read.
std::unique_ptr<ServerRole> make_read_server(const Workload& workload);
std::unique_ptr<ClientRole> make_read_client(const Workload& workload, const std::string& address);

}  // namespace perf::sockets
