// How often a test goes round on each class of fabric.
#include <gtest/gtest.h>

#include "harness/test.hpp"

namespace conformance {
namespace {

std::uint64_t rounds_on(FabricClass fabric_class, std::uint64_t wanted, std::uint64_t bytes,
                        bool long_run = false) {
  Setting setting;
  setting.fabric_class = fabric_class;
  return Test(0, setting, PeerKind::thread, 1, long_run).rounds(wanted, bytes);
}

TEST(Budget, a_native_fabric_gives_what_is_wanted) {
  EXPECT_EQ(rounds_on(FabricClass::native, 40'000, 11'000), 40'000U);
  EXPECT_EQ(rounds_on(FabricClass::shared_memory, 40'000, 11'000), 40'000U);
}

TEST(Budget, an_emulated_one_gives_less_of_everything_but_never_nothing) {
  EXPECT_EQ(rounds_on(FabricClass::emulated, 20'000, 8), 2'500U);
  EXPECT_EQ(rounds_on(FabricClass::emulated, 40'000, 11'000), 762U) << "8 MiB";
  EXPECT_EQ(rounds_on(FabricClass::emulated, 300, std::uint64_t{1} << 30), 16U);
  EXPECT_EQ(rounds_on(FabricClass::emulated, 5, 1), 5U) << "never more than wanted";
}

TEST(Budget, a_long_run_has_the_time) {
  EXPECT_EQ(rounds_on(FabricClass::emulated, 20'000, 8, true), 20'000U);
  EXPECT_EQ(rounds_on(FabricClass::emulated, 40'000, 11'000, true), 12'201U);
}

TEST(Budget, fabrics_are_told_apart_by_name_unless_the_machine_is_emulated) {
  if (class_of("tcp", "") == FabricClass::emulated) {
    EXPECT_EQ(class_of("ofi", "shm"), FabricClass::emulated);
    return;
  }
  EXPECT_EQ(class_of("tcp", ""), FabricClass::native);
  EXPECT_EQ(class_of("strict+ofi", "shm"), FabricClass::shared_memory);
  EXPECT_EQ(class_of("verbs", "fake0"), FabricClass::shared_memory);
  EXPECT_EQ(class_of("verbs", "mlx5_0"), FabricClass::native);
}

}  // namespace
}  // namespace conformance
