// Connecting and closing, ten thousand times: nothing is left behind.
#include <dlfcn.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

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

// The helper destroys pairs of endpoints that ended, one a round: waits until `reached` holds, or for 5 s.
template <class Reached>
Holdings settled(const Reached& reached) {
  const auto give_up = std::chrono::steady_clock::now() + 5s;
  Holdings now = holdings();
  while (!reached(now) && std::chrono::steady_clock::now() < give_up) {
    std::this_thread::sleep_for(10ms);
    now = holdings();
  }
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
    std::uint64_t last = 0;
    int steady = 0;
    const Holdings before = settled([&](const Holdings& now) {
      steady = now.objects == last ? steady + 1 : 0;
      last = now.objects;
      return steady == 30;
    });
    EXPECT_GT(before.objects, 0U);
    for (int i = 0; i < cycles; ++i) cycle(i);
    const Holdings after = settled([&](const Holdings& now) { return now.objects == before.objects; });
    EXPECT_EQ(after.objects, before.objects);
    EXPECT_LE(after.descriptors, before.descriptors);
    if (memory_is_ours) {
      EXPECT_LE(after.resident_kib, before.resident_kib + 1024);
    }
  });
}

}  // namespace
}  // namespace fakeverbs_test
