#include "transports.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace weft::ucx {
namespace {

TEST(Transports, TcpIsOnEveryMachine) {
  const std::vector<Transport> found = list_transports();
  EXPECT_TRUE(std::any_of(found.begin(), found.end(),
                          [](const Transport& one) { return one.name == "tcp" && one.device == "lo"; }));
}

TEST(Transports, DevicesAreNamedOnce) {
  const std::vector<Transport> found = {
      {"posix", "memory"}, {"sysv", "memory"}, {"tcp", "lo"}, {"tcp", "e0"}};
  EXPECT_EQ(devices_of(found, "posix,sysv"), "memory");
  EXPECT_EQ(devices_of(found, "tcp,posix"), "memory, lo, e0");
  EXPECT_EQ(devices_of(found, "rc_verbs"), "");
}

}  // namespace
}  // namespace weft::ucx
