// Connecting and closing, ten thousand times: nothing is left behind.
#include <dlfcn.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "loop.hpp"

namespace fakeverbs_test {
namespace {

#ifdef WEFT_SANITIZED
constexpr int cycles = 500;
constexpr bool memory_is_ours = false;  // a sanitizer keeps what was freed
#else
constexpr int cycles = 10'000;
constexpr bool memory_is_ours = true;
#endif

struct Holdings {
  std::uint64_t objects = 0;  // of the device: queue pairs, regions, completion queues
  std::ptrdiff_t descriptors = 0;
  std::uint64_t resident_kib = 0;
};

Holdings holdings() {
  Holdings now;
  // The device's library is preloaded; it counts what lives in it.
  const auto count = reinterpret_cast<std::uint64_t (*)()>(::dlsym(RTLD_DEFAULT, "fakeverbs_live_objects"));
  if (count != nullptr) now.objects = count();
  now.descriptors = std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  std::ifstream statistics("/proc/self/statm");
  std::uint64_t pages = 0;
  statistics >> pages >> pages;
  now.resident_kib = pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) / 1024;
  return now;
}

TEST(Cycles, ConnectingAndClosingLeavesNothing) {
  expect_under_plan("", [] {
    Loop loop;
    const auto cycle = [&loop](int i) {
      loop.connect();
      ASSERT_EQ(loop.far.receive(loop.region.slice(64, 64), 1), weft::Status::ok);
      ASSERT_EQ(loop.near.send(loop.region.slice(0, 64), 1), weft::Status::ok);
      ASSERT_EQ(loop.until(loop.far_queue, weft::Operation::receive).back().status, weft::Status::ok);
      if (i % 2 == 0) {
        loop.near.close(5s);
      } else {
        loop.near.abort();
      }
      (void)loop.until(loop.near_queue, weft::Operation::endpoint_ended);
      (void)loop.until(loop.far_queue, weft::Operation::endpoint_ended);
    };
    for (int i = 0; i < 100; ++i) cycle(i);
    const Holdings before = holdings();
    EXPECT_GT(before.objects, 0U);
    for (int i = 0; i < cycles; ++i) cycle(i);
    const Holdings after = holdings();
    EXPECT_EQ(after.objects, before.objects);
    EXPECT_LE(after.descriptors, before.descriptors);
    if (memory_is_ours) {
      EXPECT_LE(after.resident_kib, before.resident_kib + 1024);
    }
  });
}

}  // namespace
}  // namespace fakeverbs_test
