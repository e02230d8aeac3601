// The workloads on weft, one pair of makers per kind of work.
#pragma once

#include <memory>
#include <string>

#include "role.hpp"

namespace perf {

/// Ping-pong of sends, or of writes with immediate.
std::unique_ptr<ServerRole> make_weft_ping_server(const std::string& provider, const Workload& workload);
std::unique_ptr<ClientRole> make_weft_ping_client(const std::string& provider, const Workload& workload,
                                                  const std::string& address);

/// Ping-pong of sends over many endpoints on one queue.
std::unique_ptr<ServerRole> make_weft_crowd_server(const std::string& provider, const Workload& workload);
std::unique_ptr<ClientRole> make_weft_crowd_client(const std::string& provider, const Workload& workload,
                                                   const std::string& address);

/// Calls alone, both ends in the client's process. Throws std::runtime_error where the fabric is not done
/// within the call.
std::unique_ptr<ClientRole> make_weft_caller(const std::string& provider, const Workload& workload);

/// Sends one way, acknowledged once at the end.
std::unique_ptr<ServerRole> make_weft_send_server(const std::string& provider, const Workload& workload);
std::unique_ptr<ClientRole> make_weft_send_client(const std::string& provider, const Workload& workload,
                                                  const std::string& address);

/// Writes and reads: the server lends its memory and polls.
std::unique_ptr<ServerRole> make_weft_target(const std::string& provider, const Workload& workload);
std::unique_ptr<ClientRole> make_weft_write_client(const std::string& provider, const Workload& workload,
                                                   const std::string& address);
std::unique_ptr<ClientRole> make_weft_read_client(const std::string& provider, const Workload& workload,
                                                  const std::string& address);

}  // namespace perf
