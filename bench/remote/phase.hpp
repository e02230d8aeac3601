// One go of a row: both sides call it at the same time, the client with the clock that counts.
#pragma once

#include <chrono>
#include <cstdint>

#include "histogram.hpp"
#include "sender.hpp"
#include "site.hpp"
#include "wire.hpp"

namespace perf::remote {

/// What one side did as the one that starts operations.
struct Done {
  std::uint64_t operations = 0;
  double seconds = 0;
};

struct PhaseResult {
  Done client;
  Done server;          ///< Nothing, unless the row is bidirectional.
  Histogram latencies;  ///< Half of each way there and back, or the time until complete; latency rows only.
};

/// Asks the server to join in, and does the client's part.
[[nodiscard]] PhaseResult run_as_client(Site& site, Sender& sender, const Amount& amount);

/// Does the server's part of what the client asked for, `patience` longer than that should take at most.
void run_as_server(Site& site, Sender& sender, const Amount& amount, std::chrono::seconds patience);

}  // namespace perf::remote
