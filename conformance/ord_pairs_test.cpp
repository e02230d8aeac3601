// ORD for pairs of unlike operations, where one kind may have a shorter way than the other.
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

constexpr std::size_t large = 100'000;

// A connection, and memory of every kind for it.
struct Scene {
  Loop loop;
  GuardedBuffer memory{large};  // the target's
  GuardedBuffer local{large};
  GuardedBuffer result{large};
  GuardedBuffer message{large};
  weft::MemoryRegion memory_region;
  weft::MemoryRegion local_region;
  weft::MemoryRegion result_region;
  weft::MemoryRegion message_region;
  weft::RemoteMemory remote;

  explicit Scene(const Test& test) : loop(make_loop(test)) {
    memory_region = loop.region(memory, Access::remote_read | Access::remote_write | Access::remote_atomic);
    local_region = loop.region(local);
    result_region = loop.region(result);
    message_region = loop.region(message);
    remote = loop.near_endpoint.import_memory(memory_region.key());
  }
  template <class One>
  void post(One&& one) {
    REQUIRE_EQ(post_when_possible(loop.near, one), Status::ok);
  }
  [[nodiscard]] std::uint64_t& value() const { return memory.at<std::uint64_t>(0); }
  [[nodiscard]] std::uint64_t& old() const { return result.at<std::uint64_t>(0); }
};

constexpr int rounds = 40;

CONFORMANCE_TEST(ORD, 1, messages_of_all_kinds_keep_their_order, alone) {
  Scene scene(test);
  weft::Endpoint& near = scene.loop.near_endpoint;
  // Each pair in both orders: large, small, inline, empty, and a write with immediate.
  constexpr std::uint32_t kinds = 5;
  for (std::uint32_t i = 0; i < kinds * kinds; ++i) {
    const std::uint32_t pair[] = {i / kinds, i % kinds};
    for (std::uint64_t k = 0; k < 2; ++k)
      REQUIRE_EQ(scene.loop.far_endpoint.receive(scene.message_region.whole(), k), Status::ok);
    for (const std::uint32_t kind : pair) {
      const Segment inlined = Segment::inline_bytes(scene.local.data(), 16);
      scene.post([&] {
        switch (kind) {
          case 0:
            return near.send_with_immediate(scene.local_region.whole(), kind, kind);
          case 1:
            return near.send_with_immediate(scene.local_region.slice(0, 100), kind, kind);
          case 2:
            return near.send_with_immediate(inlined, kind, kind, Flags::inline_data);
          case 3:
            return near.send_with_immediate(Segment{}, kind, kind);
          default:
            return near.write_with_immediate(scene.local_region.slice(0, 64), scene.remote.at(0), kind, kind);
        }
      });
    }
    for (const std::uint32_t kind : pair) {
      CHECK_EQ(scene.loop.far.next().immediate, kind) << "of " << pair[0] << " and " << pair[1];
      CHECK_EQ(scene.loop.near.next().context, kind) << "of " << pair[0] << " and " << pair[1];
    }
  }
}

CONFORMANCE_TEST(ORD, 2, a_receive_shows_what_was_done_just_before_it, alone) {
  Scene scene(test);
  weft::Endpoint& near = scene.loop.near_endpoint;
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t expected = 1000 + static_cast<unsigned>(round);
    for (int kind = 0; kind < 6; ++kind) {
      scene.memory.poison();
      scene.value() = 0;
      scene.local.fill(test.seed() + expected);
      REQUIRE_EQ(scene.loop.far_endpoint.receive(scene.message_region.whole(), 1), Status::ok);
      const Segment before = scene.result_region.slice(0, 8);
      scene.post([&] {
        switch (kind) {
          case 0:
          case 1:
            return near.fetch_add(before, scene.remote.at(0), expected, 1, Flags::unsignalled);
          case 2:
            return near.compare_swap(before, scene.remote.at(0), 0, expected, 1, Flags::unsignalled);
          case 3:
          case 4:
            return near.write(scene.local_region.whole(), scene.remote.at(0), 1, Flags::unsignalled);
          default:
            return near.write(Segment::inline_bytes(&expected, sizeof(expected)), scene.remote.at(0), 1,
                              Flags::inline_data | Flags::unsignalled);
        }
      });
      scene.post([&] {
        return kind % 2 == 0 ? near.send(Segment{}, 2, Flags::unsignalled)
                             : near.write_with_immediate(Segment{}, {}, 7, 2, Flags::unsignalled);
      });
      CHECK_EQ(scene.loop.far.next().operation, Operation::receive);
      if (kind == 3 || kind == 4) {
        REQUIRE_EQ(scene.memory.difference(test.seed() + expected), "") << "kind " << kind;
      } else {
        REQUIRE_EQ(scene.value(), expected) << "kind " << kind;
      }
    }
  }
}

CONFORMANCE_TEST(ORD, 3, what_is_cancelled_completes_in_posting_order, alone) {
  Scene scene(test);
  weft::Endpoint& near = scene.loop.near_endpoint;
  std::uint64_t receives = 0;
  for (; receives < 6; ++receives)
    REQUIRE_EQ(near.receive(scene.message_region.slice(0, 64), receives), Status::ok);
  // Without receives at the other end.
  std::uint64_t sends = 0;
  while (sends < 24 && near.send(scene.local_region.whole(), 100 + sends) == Status::ok) ++sends;
  CHECK_GE(sends, 1);
  near.abort();
  std::uint64_t next_receive = 0;
  std::uint64_t next_send = 100;
  for (const Completion& completion : scene.loop.near.until_ended(near)) {
    if (completion.operation == Operation::receive) CHECK_EQ(completion.context, next_receive++);
    if (completion.operation == Operation::send) CHECK_EQ(completion.context, next_send++);
  }
  CHECK_EQ(next_receive, receives);
  CHECK_EQ(next_send, 100 + sends);
}

CONFORMANCE_TEST(ORD, 3, quick_and_slow_operations_complete_in_posting_order, alone) {
  Scene scene(test);
  weft::Endpoint& near = scene.loop.near_endpoint;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    scene.post([&] { return near.read(scene.result_region.slice(0, 64), scene.remote.at(0), 3 * round); });
    scene.post(
        [&] { return near.write(scene.local_region.slice(0, 8), scene.remote.at(64), 3 * round + 1); });
    scene.post([&] { return near.flush(3 * round + 2); });
    if (round % 4 != 3) continue;
    // All are there when the first is looked for.
    pause(2ms);
    for (std::uint64_t i = 3 * (round - 3); i < 3 * (round + 1); ++i)
      CHECK_EQ(scene.loop.near.next().context, i);
  }
}

CONFORMANCE_TEST(ORD, 4, a_fenced_send_is_no_sign_before_earlier_reads_are_over, alone) {
  Scene scene(test);
  weft::Endpoint& near = scene.loop.near_endpoint;
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t seed = test.seed() + static_cast<unsigned>(round);
    scene.memory.fill(seed);
    scene.result.poison();
    REQUIRE_EQ(scene.loop.far_endpoint.receive(scene.message_region.whole(), 1), Status::ok);
    scene.post([&] { return near.read(scene.result_region.whole(), scene.remote.at(0), 2); });
    scene.post([&] { return near.send(Segment{}, 3, Flags::fence); });
    CHECK_EQ(scene.loop.far.next().operation, Operation::receive);
    // The target takes the message for leave to use the memory again.
    scene.memory.poison();
    CHECK_EQ(scene.loop.near.next().context, 2);
    CHECK_EQ(scene.loop.near.next().context, 3);
    REQUIRE_EQ(scene.result.difference(seed), "") << "round " << round;
  }
}

CONFORMANCE_TEST(ORD, 4, fences_hold_between_atomics_and_writes, alone) {
  Scene scene(test);
  weft::Endpoint& near = scene.loop.near_endpoint;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const Segment found = scene.result_region.slice(0, 8);
    const std::uint64_t number = 7 + round;
    const auto write = [&](Flags more) {
      scene.post([&] {
        return near.write(Segment::inline_bytes(&number, sizeof(number)), scene.remote.at(0), 2,
                          Flags::inline_data | more);
      });
    };
    const auto add = [&](Flags more) {
      scene.post([&] { return near.fetch_add(found, scene.remote.at(0), 1, 1, more); });
    };
    const auto finish = [&] {
      scene.post([&] { return near.flush(3); });
      for (const Completion& completion : scene.loop.near.take(3)) CHECK_EQ(completion.status, Status::ok);
    };
    scene.value() = 1;
    add(Flags::none);
    write(Flags::fence);
    finish();
    CHECK_EQ(scene.old(), 1) << "a fenced write after an addition";
    CHECK_EQ(scene.value(), number) << "a fenced write after an addition";
    scene.value() = 1;
    write(Flags::none);
    add(Flags::fence);
    finish();
    CHECK_EQ(scene.old(), number) << "a fenced addition after a write";
    CHECK_EQ(scene.value(), number + 1) << "a fenced addition after a write";
  }
}

CONFORMANCE_TEST(ORD, 4, a_fence_holds_within_a_batch, alone) {
  Scene scene(test);
  weft::Endpoint& near = scene.loop.near_endpoint;
  const Segment into = scene.result_region.whole();
  const Segment from = scene.local_region.whole();
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t seed = test.seed() + static_cast<unsigned>(round);
    scene.memory.fill(seed);
    scene.local.fill(~seed);
    scene.result.poison();
    weft::WorkRequest batch[2];
    batch[0].operation = Operation::read;
    batch[0].segments = std::span(&into, 1);
    batch[1].operation = Operation::write;
    batch[1].flags = Flags::fence;
    batch[1].segments = std::span(&from, 1);
    for (weft::WorkRequest& request : batch) request.remote = scene.remote.at(0);
    REQUIRE_EQ(near.post(batch).accepted, 2U);
    // Only a flush says that the write is in the memory, which the next round fills by hand.
    scene.post([&] { return near.flush(0); });
    for (const Completion& completion : scene.loop.near.take(3)) CHECK_EQ(completion.status, Status::ok);
    REQUIRE_EQ(scene.result.difference(seed), "") << "round " << round;
  }
}

}  // namespace
}  // namespace conformance
