// The bare baseline does what it claims: every workload runs, and the messages it carries are checked by
// their stamps.
#include <gtest/gtest.h>

#include "baselines.hpp"
#include "machine.hpp"
#include "process_pair.hpp"
#include "workload.hpp"

namespace perf {
namespace {

std::vector<Workload> all_workloads() {
  std::vector<Workload> workloads = select_workloads(operation_names(), {});
  const std::vector<Workload> odd_sizes = select_workloads(operation_names(), {9, 4096, 4099, 100'001});
  workloads.insert(workloads.end(), odd_sizes.begin(), odd_sizes.end());
  return workloads;
}

TEST(BareSockets, RunEveryWorkload) {
  const auto sockets = find_baseline("tcp");
  ASSERT_TRUE(sockets);
  for (const Workload& workload : all_workloads()) {
    if (workload.metric == Metric::call) continue;  // the bare calls are of verbs
    SCOPED_TRACE(title(workload) + ", " + size_text(workload.size));
    const std::uint64_t operations = std::uint64_t{workload.batch} * 35;
    ProcessPair pair(*sockets, workload, choose_cores());
    for (int repeat = 0; repeat < 2; ++repeat) {
      const Slice slice = pair.run(operations);
      EXPECT_EQ(slice.operations, operations);
      EXPECT_GT(slice.seconds, 0);
      EXPECT_EQ(slice.round_trips.size(), workload.metric == Metric::latency ? operations : 0U);
    }
  }
}

}  // namespace
}  // namespace perf
