// What the harness sees of threads.
#include "harness/process_state.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "harness/clock.hpp"

namespace conformance {
namespace {

TEST(ProcessState, TellsWhoSleeps) {
  std::atomic<pid_t> id{0};
  std::atomic<bool> go_on{false};
  std::atomic<bool> busy{true};
  std::thread thread([&] {
    id = gettid();
    while (busy) {
    }
    while (!go_on) pause(100ms);
  });
  while (id == 0) pause(1ms);
  EXPECT_FALSE(sleeps(id));
  busy = false;
  EXPECT_TRUE(eventually(5s, [&] { return sleeps(id); }));
  go_on = true;
  thread.join();
}

}  // namespace
}  // namespace conformance
