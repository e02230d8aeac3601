// What a worker process does with its channel: obey until the other end closes.
#pragma once

#include "channel.hpp"
#include "role.hpp"

namespace perf {

/// The server's side: tells the address, accepts when told, serves every run.
void serve_channel(Channel& channel, ServerRole& role);

/// The client's side: tells the fabric, measures every run.
void run_channel(Channel& channel, ClientRole& role);

}  // namespace perf
