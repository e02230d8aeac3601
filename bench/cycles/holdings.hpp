// What a process holds, as the kernel counts it.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace perf {

/// Things that are counted one by one, each with its name: descriptors, threads, mappings, and what every
/// RDMA device of this machine holds (`rdma resource`: queue pairs, completion queues, regions, …).
using Holdings = std::map<std::string, std::uint64_t>;

/// Throws std::runtime_error when there is an RDMA device and what it holds cannot be seen.
[[nodiscard]] Holdings count_holdings();

/// "descriptors 12, rxe0 qp 1, …"
[[nodiscard]] std::string to_text(const Holdings& holdings);

}  // namespace perf
