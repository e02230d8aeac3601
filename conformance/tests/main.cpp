// Tests of the harness: the suite is only worth what it can find.
#include <gtest/gtest.h>

#include "harness/clock.hpp"
#include "harness/fork_server.hpp"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  conformance::start_fork_server();
  conformance::start_canary();
  return RUN_ALL_TESTS();
}
