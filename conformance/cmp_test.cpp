// CMP: completions.
#include <algorithm>
#include <map>
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

CONFORMANCE_TEST(CMP, 1, signalled_operations_complete_once_unsignalled_ones_not_at_all, alone) {
  Loop loop = make_loop(test);
  const GuardedBuffer local(4096);
  const GuardedBuffer memory(4096);
  weft::MemoryRegion region = loop.region(local);
  weft::MemoryRegion memory_region = loop.region(memory, Access::remote_read | Access::remote_write);
  const weft::RemoteMemory remote = loop.near_endpoint.import_memory(memory_region.key());
  std::vector<std::uint64_t> expected;
  std::size_t receives = 0;
  for (std::uint64_t i = 0; i < 3600; ++i) {
    const bool signalled = i % 3 == 0;
    const Flags flags = signalled ? Flags::none : Flags::unsignalled;
    const Segment segment = region.slice(0, i % 64);
    const bool takes_receive = i % 5 == 0 || i % 5 == 2;
    if (takes_receive) {
      REQUIRE_EQ(loop.far_endpoint.receive(region.slice(1024, 64), i), Status::ok);
      ++receives;
    }
    REQUIRE_EQ(post_when_possible(loop.near,
                                  [&] {
                                    switch (i % 5) {
                                      case 0:
                                        return loop.near_endpoint.send(segment, i, flags);
                                      case 1:
                                        return loop.near_endpoint.write(segment, remote.at(0), i, flags);
                                      case 2:
                                        return loop.near_endpoint.write_with_immediate(segment, remote.at(0),
                                                                                       5, i, flags);
                                      case 3:
                                        return loop.near_endpoint.read(segment, remote.at(0), i, flags);
                                      default:
                                        return loop.near_endpoint.flush(i, flags);
                                    }
                                  }),
               Status::ok)
        << "operation " << i << "; the endpoint's end: " << loop.near_endpoint.describe_end();
    if (signalled) expected.push_back(i);
    // Receives are bounded by their depth: take them as they come.
    if (takes_receive) CHECK_EQ(loop.far.next().context, i);
  }
  for (const std::uint64_t context : expected) CHECK_EQ(loop.near.next().context, context);
  CHECK_EQ(list(loop.near.all_within(200ms)), "(none)");
  CHECK_EQ(list(loop.far.all_within(1ms)), "(none)");
  CHECK_GE(receives, 1);
}

CONFORMANCE_TEST(CMP, 1, a_failed_unsignalled_operation_completes_once_with_its_context, alone) {
  Loop loop = make_loop(test);
  const GuardedBuffer buffer(4096);
  weft::MemoryRegion region = loop.region(buffer);
  // Without receives at the other end these cannot be over when the endpoint ends.
  constexpr std::size_t size = 1 << 20;
  const GuardedBuffer large(size);
  weft::MemoryRegion large_region = loop.region(large);
  std::uint64_t posted = 0;
  while (posted < 16 &&
         loop.near_endpoint.send(large_region.whole(), 100 + posted, Flags::unsignalled) == Status::ok) {
    ++posted;
  }
  CHECK_GE(posted, 1);
  loop.near_endpoint.abort();
  const auto all = loop.near.until_ended(loop.near_endpoint);
  // Some may have been handed over before; those that were not complete in order, once, up to the last.
  if (posted * size > loop.near_endpoint.limits().unexpected_bytes) CHECK_GE(all.size(), 2) << list(all);
  const std::uint64_t failed = all.size() - 1;
  CHECK_LE(failed, posted);
  for (std::size_t i = 0; i < failed; ++i) {
    CHECK_EQ(all[i].context, 100 + posted - failed + i) << list(all);
    CHECK_EQ(all[i].operation, Operation::send);
    CHECK_NE(all[i].status, Status::ok) << "an unsignalled operation that succeeded is silent";
    CHECK_EQ(all[i].bytes, 0);
  }
}

// Keeps receives posted and counts.
void counts_messages(Test& test, Channel& control) {
  const auto count = control.receive_value<std::uint64_t>();
  std::uint64_t depth = 128;
  const GuardedBuffer buffer(8 * depth);
  weft::MemoryRegion region;
  SideOptions options;
  options.prepared = [&](weft::Context& context, weft::Endpoint& endpoint) {
    depth = std::min<std::uint64_t>(depth, endpoint.limits().receive_depth);
    region = context.register_memory(buffer.bytes(), Access::local_write);
    for (std::uint64_t i = 0; i < depth; ++i) {
      REQUIRE_EQ(endpoint.receive(region.slice(8 * i, 8), i), Status::ok);
    }
  };
  Side side = accept_side(test, control, options);
  for (std::uint64_t i = 0; i < count; ++i) {
    const Completion received = side.completions.next();
    if (received.status != Status::ok || received.context != i % depth ||
        buffer.at<std::uint64_t>(8 * (i % depth)) != i) {
      REQUIRE_EQ(buffer.at<std::uint64_t>(8 * (i % depth)), i) << "message " << i << " of " << count;
    }
    REQUIRE_EQ(side.endpoint.receive(region.slice(8 * (i % depth), 8), i % depth), Status::ok);
  }
  control.barrier(60s);
}

void send_silently(Test& test, std::uint64_t count) {
  Peer peer = test.start_peer(counts_messages);
  peer.control().send_value(count + 1);
  SideOptions options;
  options.capacity = 4;
  options.endpoint.send_depth = 16;
  Side side = connect_side(test, peer.control(), options);
  for (std::uint64_t i = 0; i < count; ++i) {
    const Status status = post_when_possible(side.completions, [&] {
      return side.endpoint.send(Segment::inline_bytes(&i, sizeof(i)), i,
                                Flags::inline_data | Flags::unsignalled);
    });
    REQUIRE_EQ(status, Status::ok);
  }
  REQUIRE_EQ(post_when_possible(side.completions,
                                [&] {
                                  return side.endpoint.send(Segment::inline_bytes(&count, sizeof(count)),
                                                            4711, Flags::inline_data);
                                }),
             Status::ok);
  const Completion only = side.completions.next();
  CHECK_EQ(only.context, 4711);
  CHECK_EQ(only.status, Status::ok);
  CHECK_EQ(list(side.completions.all_within(50ms)), "(none)");
  peer.control().barrier(60s);
  peer.finish();
}

CONFORMANCE_TEST(CMP, 2, unsignalled_operations_follow_each_other_without_end, with_peer) {
  send_silently(test, test.rounds(20'000, 8));
}

CONFORMANCE_TEST(CMP, 2, a_hundred_thousand_unsignalled_operations, with_peer.full().within(120s)) {
  send_silently(test, test.rounds(100'000, 8));
}

CONFORMANCE_TEST(CMP, 3, after_its_completion_a_buffer_is_the_programs_again, with_peer) {
  static constexpr std::size_t sizes[] = {1, 1000, 70'000, 1 << 20};
  Peer peer = test.start_peer([](Test& t, Channel& control) {
    Side side = accept_side(t, control);
    const GuardedBuffer buffer(1 << 20);
    weft::MemoryRegion region = side.region(buffer);
    for (const std::size_t size : sizes) {
      for (int late = 0; late < 2; ++late) {
        // Late: the bytes may have left the sender long before.
        if (late != 0) control.barrier();
        if (late != 0) pause(50ms);
        buffer.poison();
        REQUIRE_EQ(side.endpoint.receive(region.whole(), 1), Status::ok);
        if (late == 0) control.barrier();
        REQUIRE_EQ(side.completions.next_of(Operation::receive).bytes, size);
        CHECK_EQ(pattern_difference(buffer.bytes(0, size), t.seed() + size), "")
            << size << " bytes, late " << late;
        buffer.poison();
        control.barrier();
        side.completions.collect();
        CHECK_EQ(buffer.touched(), "") << "a finished receive's, " << size << " bytes, late " << late;
      }
    }
  });
  Side side = connect_side(test, peer.control());
  for (const std::size_t size : sizes) {
    const GuardedBuffer buffer(size);
    weft::MemoryRegion region = side.region(buffer);
    for (int late = 0; late < 2; ++late) {
      buffer.fill(test.seed() + size);
      if (late == 0) peer.control().barrier();
      REQUIRE_EQ(side.endpoint.send(region.whole(), 1), Status::ok);
      if (late != 0) peer.control().barrier();
      CHECK_EQ(side.completions.next().status, Status::ok);
      buffer.poison();
      peer.control().barrier();
      CHECK_EQ(buffer.touched(), "");
    }
  }
  peer.finish();
}

CONFORMANCE_TEST(CMP, 3, every_later_operation_finds_a_completed_write_done, alone) {
  Loop loop = make_loop(test);
  constexpr std::size_t size = 50'000;
  const GuardedBuffer memory(size);
  const GuardedBuffer local(size);
  weft::MemoryRegion memory_region = loop.region(memory, Access::remote_read | Access::remote_write);
  weft::MemoryRegion region = loop.region(local);
  const weft::RemoteMemory remote = loop.near_endpoint.import_memory(memory_region.key());
  for (std::uint64_t round = 0; round < 50; ++round) {
    local.fill(test.seed() + round);
    REQUIRE_EQ(loop.near_endpoint.write(region.whole(), remote.at(0), 1), Status::ok);
    CHECK_EQ(loop.near.next().status, Status::ok);
    local.poison();
    REQUIRE_EQ(loop.near_endpoint.read(region.whole(), remote.at(0), 2), Status::ok);
    CHECK_EQ(loop.near.next().status, Status::ok);
    REQUIRE_EQ(local.difference(test.seed() + round), "") << "round " << round;
  }
}

CONFORMANCE_TEST(CMP, 4, a_completion_stands_for_all_earlier_operations, alone) {
  Loop loop = make_loop(test);
  constexpr std::size_t size = 5000;
  constexpr std::size_t count = 32;
  const GuardedBuffer memory(size * count);
  const GuardedBuffer local(size * count);
  weft::MemoryRegion memory_region = loop.region(memory, Access::remote_read | Access::remote_write);
  weft::MemoryRegion region = loop.region(local);
  const weft::RemoteMemory remote = loop.near_endpoint.import_memory(memory_region.key());
  for (std::uint64_t round = 0; round < 50; ++round) {
    memory.fill(test.seed() + round);
    local.poison();
    for (std::size_t i = 0; i < count; ++i) {
      REQUIRE_EQ(post_when_possible(loop.near,
                                    [&] {
                                      return loop.near_endpoint.read(region.slice(i * size, size),
                                                                     remote.at(i * size), i,
                                                                     Flags::unsignalled);
                                    }),
                 Status::ok);
    }
    // A write completes early on many a fabric; here it must wait for the reads.
    REQUIRE_EQ(
        post_when_possible(loop.near, [&] { return loop.near_endpoint.write(Segment{}, remote.at(0), 9); }),
        Status::ok);
    CHECK_EQ(loop.near.next().context, 9);
    REQUIRE_EQ(local.difference(test.seed() + round), "") << "round " << round;
  }
}

CONFORMANCE_TEST(CMP, 5, all_fields_of_a_completion_are_right, alone) {
  SideOptions options;
  options.endpoint.user_value = 0xfeedfacecafebeef;
  Loop loop = make_loop(test, options);
  const GuardedBuffer local(256);
  const GuardedBuffer memory(256);
  weft::MemoryRegion region = loop.region(local);
  weft::MemoryRegion memory_region = loop.region(memory, Access::remote_read | Access::remote_write);
  const weft::RemoteMemory remote = loop.near_endpoint.import_memory(memory_region.key());
  const auto check = [&](Completions& completions, const weft::Endpoint& endpoint, Operation operation,
                         std::uint64_t context, std::uint64_t bytes) {
    const Completion completion = completions.next();
    CHECK_EQ(completion.operation, operation);
    CHECK_EQ(completion.status, Status::ok);
    CHECK_EQ(completion.context, context);
    CHECK_EQ(completion.bytes, bytes);
    CHECK_EQ(completion.endpoint_id, endpoint.id());
    CHECK_EQ(completion.user_value, 0xfeedfacecafebeefU);
    CHECK_EQ(completion.native_code, 0);
    return completion;
  };
  CHECK_NE(loop.near_endpoint.id(), 0);
  CHECK_NE(loop.near_endpoint.id(), loop.far_endpoint.id());
  CHECK_EQ(loop.near_endpoint.user_value(), 0xfeedfacecafebeefU);
  REQUIRE_EQ(loop.far_endpoint.receive(region.slice(128, 128), 11), Status::ok);
  REQUIRE_EQ(loop.far_endpoint.receive(region.slice(128, 128), 12), Status::ok);
  REQUIRE_EQ(loop.near_endpoint.send(region.slice(0, 100), 1), Status::ok);
  check(loop.near, loop.near_endpoint, Operation::send, 1, 100);
  CHECK(!check(loop.far, loop.far_endpoint, Operation::receive, 11, 100).has_immediate);
  REQUIRE_EQ(loop.near_endpoint.write(region.slice(0, 101), remote.at(0), 2), Status::ok);
  check(loop.near, loop.near_endpoint, Operation::write, 2, 101);
  REQUIRE_EQ(loop.near_endpoint.write_with_immediate(region.slice(0, 102), remote.at(0), 31, 3), Status::ok);
  check(loop.near, loop.near_endpoint, Operation::write_with_immediate, 3, 102);
  const Completion received = check(loop.far, loop.far_endpoint, Operation::receive, 12, 102);
  CHECK(received.has_immediate);
  CHECK_EQ(received.immediate, 31);
  REQUIRE_EQ(loop.near_endpoint.read(region.slice(0, 103), remote.at(0), 4), Status::ok);
  check(loop.near, loop.near_endpoint, Operation::read, 4, 103);
  REQUIRE_EQ(loop.near_endpoint.flush(5), Status::ok);
  check(loop.near, loop.near_endpoint, Operation::flush, 5, 0);
  // Failures too.
  REQUIRE_EQ(loop.near_endpoint.receive(region.slice(128, 128), 13), Status::ok);
  loop.near_endpoint.abort();
  const auto all = loop.near.until_ended(loop.near_endpoint);
  REQUIRE_EQ(all.size(), 2U) << list(all);
  CHECK_EQ(all[0].operation, Operation::receive);
  CHECK_EQ(all[0].status, Status::cancelled);
  CHECK_EQ(all[0].context, 13);
  CHECK_EQ(all[0].bytes, 0);
  for (const Completion& completion : all) {
    CHECK_EQ(completion.endpoint_id, loop.near_endpoint.id());
    CHECK_EQ(completion.user_value, 0xfeedfacecafebeefU);
    CHECK(!completion.has_immediate);
  }
}

CONFORMANCE_TEST(CMP, 6, a_small_queue_limits_and_never_breaks, alone) {
  for (const std::uint32_t capacity : {1U, 2U, 4U, 7U}) {
    SideOptions options;
    options.capacity = capacity;
    Loop loop = make_loop(test, options);
    CHECK_EQ(loop.near.queue().capacity(), capacity);
    const GuardedBuffer buffer(64);
    weft::MemoryRegion region = loop.region(buffer);
    for (int round = 0; round < 20; ++round) {
      for (std::uint32_t i = 0; i < capacity; ++i) {
        CHECK_EQ(loop.far_endpoint.receive(region.slice(0, 8), i), Status::ok);
        CHECK_EQ(post_soon([&] { return loop.near_endpoint.send(region.slice(8, 8), i); }), Status::ok);
      }
      REQUIRE_EQ(loop.far_endpoint.receive(region.slice(0, 8), 99), Status::again);
      REQUIRE_EQ(loop.near_endpoint.send(region.slice(8, 8), 99), Status::again);
      // Entries that are there but not taken use their room all the same.
      pause(1ms);
      REQUIRE_EQ(loop.near_endpoint.send(region.slice(8, 8), 99), Status::again);
      for (std::uint32_t i = 0; i < capacity; ++i) {
        CHECK_EQ(loop.near.next().context, i);
        CHECK_EQ(loop.far.next().context, i);
      }
    }
  }
}

CONFORMANCE_TEST(CMP, 6, reports_and_failed_unsignalled_operations_use_no_room, alone) {
  SideOptions options;
  options.capacity = 1;
  Loop loop = make_loop(test, options);
  weft::EndpointOptions dial;
  // Three more endpoints on the same queues of one entry: their connect reports need no room either.
  std::vector<weft::Endpoint> near;
  std::vector<weft::Endpoint> far;
  for (int i = 0; i < 3; ++i) {
    dial.queue = loop.near.queue();
    near.push_back(loop.context.connect(loop.listener.address(), dial));
    dial.queue = loop.far.queue();
    far.push_back(next_request(loop.far, loop.listener).accept(dial));
    CHECK_EQ(loop.near.next_of(Operation::connect).status, Status::ok);
    CHECK_EQ(loop.far.next_of(Operation::connect).status, Status::ok);
  }
  const GuardedBuffer buffer(1 << 20);
  weft::MemoryRegion region = loop.region(buffer);
  // The only room is taken and stays so.
  REQUIRE_EQ(loop.near_endpoint.receive(region.whole(), 1), Status::ok);
  std::size_t unsignalled = 0;
  for (weft::Endpoint& endpoint : near) {
    CHECK_EQ(endpoint.receive(region.whole(), 2), Status::again);
    CHECK_EQ(endpoint.send(region.whole(), 3), Status::again);
    for (int i = 0; i < 4; ++i) {
      if (endpoint.send(region.whole(), 4, Flags::unsignalled) == Status::ok) ++unsignalled;
    }
  }
  CHECK_GE(unsignalled, 3);
  for (weft::Endpoint& endpoint : near) endpoint.abort();
  for (const weft::Endpoint& endpoint : near) {
    const auto all = loop.near.until_ended(endpoint);
    CHECK_LE(all.size(), 5) << "failed unsignalled sends, once each: " << list(all);
    CHECK_EQ(all.back().operation, Operation::endpoint_ended);
  }
  for (const weft::Endpoint& endpoint : far) CHECK_EQ(loop.far.until_ended(endpoint).size(), 1);
  REQUIRE_EQ(loop.far_endpoint.send(Segment{}, 5), Status::ok);
  CHECK_EQ(loop.near.next_of(Operation::receive).context, 1);
  CHECK_EQ(loop.far.next_of(Operation::send).context, 5);
}

}  // namespace
}  // namespace conformance
