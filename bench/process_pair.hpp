// One contender at work: its server and its client in a process each, on a core each, asleep between slices.
#pragma once

#include <memory>
#include <string>

#include "role.hpp"

namespace perf {

/// The two cores the work runs on.
struct Cores {
  int client = 0;
  int server = 1;
};

class ForkedProcess;

class ProcessPair {
 public:
  /// Starts both processes and connects them. Throws std::runtime_error with the contender's own words when
  /// it cannot. The calling process must have no other threads and must not have used a weft context (the
  /// children are forked).
  ProcessPair(const Contender& contender, const Workload& workload, const Cores& cores);
  ProcessPair(const ProcessPair&) = delete;
  ProcessPair& operator=(const ProcessPair&) = delete;
  /// Both processes are told to go, and made to if they do not.
  ~ProcessPair();

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& fabric() const { return fabric_; }

  /// Both halves do `operations` operations.
  [[nodiscard]] Slice run(std::uint64_t operations);

 private:
  std::string name_;
  std::unique_ptr<ForkedProcess> server_;
  std::unique_ptr<ForkedProcess> client_;
  std::string fabric_;
};

}  // namespace perf
