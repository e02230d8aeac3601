// The workloads on bare UCX, one pair of makers per kind of work.
#pragma once

#include <memory>
#include <string>

#include "../../role.hpp"
#include "link.hpp"

namespace perf::ucx {

/// Ping-pong: messages, or puts that are flushed and then told of by a message.
std::unique_ptr<ServerRole> make_latency_server(const Workload& workload, Lanes lanes);
std::unique_ptr<ClientRole> make_latency_client(const Workload& workload, Lanes lanes,
                                                const std::string& address);

/// Messages one way, counted by the peer.
std::unique_ptr<ServerRole> make_stream_server(const Workload& workload, Lanes lanes);
std::unique_ptr<ClientRole> make_stream_client(const Workload& workload, Lanes lanes,
                                               const std::string& address);

/// Puts with flushes, or gets, that the initiator knows to be done.
std::unique_ptr<ServerRole> make_memory_server(const Workload& workload, Lanes lanes);
std::unique_ptr<ClientRole> make_memory_client(const Workload& workload, Lanes lanes,
                                               const std::string& address);

}  // namespace perf::ucx
