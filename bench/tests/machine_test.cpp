#include "machine.hpp"

#include <gtest/gtest.h>

namespace perf {
namespace {

TEST(StateText, TellsTheStatesApart) {
  EXPECT_EQ(state_text({0.07, 0.09}), "near");
  EXPECT_EQ(state_text({0.16, 0.25}), "far");
  EXPECT_EQ(state_text({0.07, 0.25}), "near and far");
  EXPECT_EQ(state_text({0.07, 40}), "near, disturbed by other programs");
  EXPECT_EQ(state_text({40}), "disturbed by other programs");
  EXPECT_EQ(state_text({}), "unknown");
}

TEST(DescribeMachine, FillsWhatAReaderNeeds) {
  const Machine machine = describe_machine();
  EXPECT_FALSE(machine.kernel.empty());
  EXPECT_FALSE(machine.processor.empty());
  EXPECT_GE(machine.processors, 1U);
  EXPECT_EQ(machine.time.size(), 20U) << machine.time;  // 2026-01-31T23:59:59Z
}

}  // namespace
}  // namespace perf
