// CMP-1 to CMP-6 for the kinds of operations, and for arrays of any size.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "harness/side.hpp"

namespace conformance {
namespace {

using weft::Access;
using weft::Completion;
using weft::Flags;
using weft::Operation;
using weft::Segment;
using weft::Status;

// A connection with memory that everything may be done to.
struct Scene {
  Loop loop;
  GuardedBuffer memory{100'000};
  GuardedBuffer local{100'000};
  weft::MemoryRegion memory_region;
  weft::MemoryRegion region;
  weft::RemoteMemory remote;

  explicit Scene(const Test& test, const SideOptions& options = {}) : loop(make_loop(test, options)) {
    memory_region = loop.region(memory, Access::remote_read | Access::remote_write | Access::remote_atomic);
    region = loop.region(local);
    remote = loop.near_endpoint.import_memory(memory_region.key());
  }
  template <class One>
  void post(One&& one) {
    REQUIRE_EQ(post_when_possible(loop.near, one), Status::ok);
  }
};

CONFORMANCE_TEST(CMP, 1, no_completion_is_lost_whatever_the_array_takes, alone) {
  Scene scene(test);
  weft::CompletionQueue queue = scene.loop.near.queue();
  std::array<Completion, 8> room;
  for (std::size_t size = 1; size <= room.size(); ++size) {
    constexpr std::size_t count = 24;
    // Their contexts are equal, so that only their number tells them apart.
    for (std::size_t i = 0; i < count; ++i)
      scene.post(
          [&] { return scene.loop.near_endpoint.write(scene.region.slice(0, 8), scene.remote.at(0), 7); });
    pause(5ms);
    std::size_t taken = scene.loop.near.kept();
    scene.loop.near = Completions(queue);  // those that were kept are counted
    const Deadline deadline(3s);
    while (taken < count && !deadline.passed()) {
      for (const Completion& completion : queue.poll(std::span(room).first(size))) {
        CHECK_EQ(completion.operation, Operation::write);
        ++taken;
      }
    }
    REQUIRE_EQ(taken, count) << "into arrays of " << size;
    CHECK_EQ(list(scene.loop.near.all_within(5ms)), "(none)");
  }
}

CONFORMANCE_TEST(CMP, 1, unsignalled_atomics_are_silent, alone) {
  Scene scene(test);
  const Segment found = scene.region.slice(0, 8);
  for (int i = 0; i < 40; ++i) {
    scene.post([&] {
      return i % 2 == 0
                 ? scene.loop.near_endpoint.fetch_add(found, scene.remote.at(8), 1, 1, Flags::unsignalled)
                 : scene.loop.near_endpoint.compare_swap(found, scene.remote.at(8), 1, 2, 2,
                                                         Flags::unsignalled);
    });
  }
  scene.post([&] { return scene.loop.near_endpoint.fetch_add(found, scene.remote.at(8), 1, 3); });
  CHECK_EQ(scene.loop.near.next().context, 3);
  CHECK_EQ(list(scene.loop.near.all_within(50ms)), "(none)");
}

CONFORMANCE_TEST(CMP, 2, unsignalled_operations_of_every_kind_follow_each_other, alone) {
  SideOptions options;
  options.capacity = 4;
  options.endpoint.send_depth = 16;
  Scene scene(test, options);
  weft::Endpoint& near = scene.loop.near_endpoint;
  const Segment segment = scene.region.slice(0, 8);
  for (const Operation operation :
       {Operation::read, Operation::write, Operation::flush, Operation::fetch_add, Operation::compare_swap}) {
    weft::WorkRequest request;
    request.operation = operation;
    request.flags = Flags::unsignalled;
    request.remote = scene.remote.at(0);
    if (operation != Operation::flush) request.segments = std::span(&segment, 1);
    const std::size_t count = 4 * std::min(64U, near.limits().send_depth) + 3;
    for (std::size_t i = 0; i < count; ++i) {
      const Deadline deadline(patience);
      Status status = Status::again;
      while ((status = near.post(request)) == Status::again && !deadline.passed()) {
        scene.loop.near.collect();
        scene.loop.far.collect();
      }
      REQUIRE_EQ(status, Status::ok) << weft::to_string(operation) << " number " << i;
    }
  }
  scene.post([&] { return near.flush(4711); });
  CHECK_EQ(scene.loop.near.next().context, 4711);
  CHECK_EQ(list(scene.loop.near.all_within(20ms)), "(none)");
}

CONFORMANCE_TEST(CMP, 3, a_completed_read_or_atomic_has_its_result, alone) {
  Scene scene(test);
  weft::Endpoint& near = scene.loop.near_endpoint;
  auto& found = scene.local.at<std::uint64_t>(0);
  for (std::uint64_t round = 0; round < 30; ++round) {
    scene.memory.fill(test.seed() + round);
    scene.local.poison();
    scene.post([&] { return near.read(scene.region.whole(), scene.remote.at(0), 1); });
    CHECK_EQ(scene.loop.near.next().bytes, scene.local.size());
    REQUIRE_EQ(scene.local.difference(test.seed() + round), "") << "round " << round;
    scene.memory.at<std::uint64_t>(8) = round;
    found = UINT64_MAX;
    scene.post([&] { return near.fetch_add(scene.region.slice(0, 8), scene.remote.at(8), 1, 2); });
    CHECK_EQ(scene.loop.near.next().bytes, 8);
    REQUIRE_EQ(found, round) << "of an addition";
    found = UINT64_MAX;
    scene.post([&] { return near.compare_swap(scene.region.slice(0, 8), scene.remote.at(8), 0, 1, 3); });
    CHECK_EQ(scene.loop.near.next().bytes, 8);
    REQUIRE_EQ(found, round + 1) << "of a comparison";
  }
}

CONFORMANCE_TEST(CMP, 4, earlier_unsignalled_atomics_and_writes_are_complete_too, alone) {
  Scene scene(test);
  weft::Endpoint& near = scene.loop.near_endpoint;
  auto& found = scene.local.at<std::uint64_t>(0);
  for (std::uint64_t round = 0; round < 30; ++round) {
    scene.memory.at<std::uint64_t>(8) = round;
    found = UINT64_MAX;
    scene.post([&] {
      return near.fetch_add(scene.region.slice(0, 8), scene.remote.at(8), 1, 1, Flags::unsignalled);
    });
    scene.post([&] { return near.write(Segment{}, scene.remote.at(0), 2); });
    CHECK_EQ(scene.loop.near.next().context, 2);
    REQUIRE_EQ(found, round) << "an addition before a write";
    // The source of a write that is complete is the program's again.
    scene.local.fill(test.seed() + round);
    scene.post([&] { return near.write(scene.region.whole(), scene.remote.at(0), 3, Flags::unsignalled); });
    scene.post([&] { return near.read(Segment{}, scene.remote.at(0), 4); });
    CHECK_EQ(scene.loop.near.next().context, 4);
    scene.local.poison();
    scene.post([&] { return near.flush(5); });
    CHECK_EQ(scene.loop.near.next().context, 5);
    REQUIRE_EQ(scene.memory.difference(test.seed() + round), "") << "round " << round;
  }
}

CONFORMANCE_TEST(CMP, 5, each_completion_tells_of_its_own_operation, alone) {
  Scene scene(test);
  weft::Endpoint& near = scene.loop.near_endpoint;
  for (std::uint64_t i = 0; i < 100; ++i) {
    const bool with = i % 3 == 1;
    const Segment segment = scene.region.slice(0, i);
    REQUIRE_EQ(scene.loop.far_endpoint.receive(scene.region.slice(1000, 100), 1000 + i), Status::ok);
    scene.post(
        [&] { return with ? near.send_with_immediate(segment, 5, i) : near.send(segment, i, Flags::none); });
    scene.post([&] { return near.fetch_add(scene.region.slice(0, 8), scene.remote.at(0), 1, 500 + i); });
    const Completion sent = scene.loop.near.next();
    CHECK_EQ(sent.context, i);
    CHECK_EQ(sent.bytes, i);
    const Completion added = scene.loop.near.next();
    CHECK_EQ(added.context, 500 + i);
    CHECK_EQ(added.bytes, 8);
    CHECK_EQ(added.operation, Operation::fetch_add);
    const Completion received = scene.loop.far.next();
    CHECK_EQ(received.context, 1000 + i);
    CHECK_EQ(received.has_immediate, with) << "message " << i;
  }
}

CONFORMANCE_TEST(CMP, 6, each_entry_taken_gives_its_room_back, alone) {
  SideOptions options;
  options.capacity = 4;
  Scene scene(test, options);
  weft::Endpoint& near = scene.loop.near_endpoint;
  weft::CompletionQueue queue = scene.loop.near.queue();
  const auto write = [&] { return near.write(scene.region.slice(0, 8), scene.remote.at(0), 1); };
  for (int i = 0; i < 4; ++i) REQUIRE_EQ(post_soon(write), Status::ok);
  CHECK_EQ(write(), Status::again);
  Completion entry;
  for (int i = 0; i < 10; ++i) {
    const Deadline deadline(patience);
    // Only one is taken, and there are more.
    while (queue.poll(std::span(&entry, 1)).empty() && !deadline.passed()) {
    }
    REQUIRE_EQ(post_soon(write), Status::ok) << "after " << i + 1 << " entries";
    CHECK_EQ(write(), Status::again);
  }
  CHECK_EQ(scene.loop.near.take(4).size(), 4);
}

}  // namespace
}  // namespace conformance
