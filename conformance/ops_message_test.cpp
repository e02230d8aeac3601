// OPS-3, OPS-4: messages, with and without a receive waiting for them, and immediates.
#include <string>
#include <vector>

#include "harness/process_state.hpp"
#include "harness/side.hpp"

namespace conformance {
namespace {

using weft::Access;
using weft::Completion;
using weft::Flags;
using weft::Operation;
using weft::Segment;
using weft::Status;

constexpr std::size_t message_sizes[] = {1, 4096, 65535, 65536, 65537, 1 << 20, 0, 100};
constexpr std::size_t largest = 1 << 20;

void receives_late(Test& test, Channel& control) {
  Side side = accept_side(test, control);
  const GuardedBuffer buffer(largest);
  weft::MemoryRegion region = side.region(buffer);
  control.barrier();
  CHECK_EQ(list(side.completions.all_within(300ms)), "(none)");
  for (const std::size_t size : message_sizes) {
    buffer.poison();
    REQUIRE_EQ(side.endpoint.receive(region.whole(), size), Status::ok);
    const Completion received = side.completions.next_of(Operation::receive);
    REQUIRE_EQ(received.status, Status::ok);
    REQUIRE_EQ(received.bytes, size);
    CHECK_EQ(pattern_difference(buffer.bytes(0, size), test.seed() + size), "") << size << " bytes";
    CHECK_EQ(buffer.touched(size, largest - size), "") << "after " << size << " bytes";
  }
  control.barrier();
}

CONFORMANCE_TEST(OPS, 3, a_send_waits_for_its_receive, with_peer) {
  Peer peer = test.start_peer(receives_late);
  Side side = connect_side(test, peer.control());
  std::vector<GuardedBuffer> buffers;
  std::vector<weft::MemoryRegion> regions;
  for (const std::size_t size : message_sizes) {
    buffers.emplace_back(size);
    buffers.back().fill(test.seed() + size);
    Segment segment;
    if (size > 0) {
      regions.push_back(side.region(buffers.back(), Access::none));
      segment = regions.back().whole();
    }
    REQUIRE_EQ(post_soon([&] { return side.endpoint.send(segment, size); }), Status::ok);
  }
  peer.control().barrier();
  for (const std::size_t size : message_sizes) {
    const Completion sent = side.completions.next_of(Operation::send);
    CHECK_EQ(sent.status, Status::ok);
    CHECK_EQ(sent.context, size);
    CHECK_EQ(sent.bytes, size);
  }
  peer.control().barrier();
  peer.finish();
}

// All receives are used up while the program is away; then it posts one more without having taken anything,
// and stays away again. Nobody but the library can tell the peer.
constexpr std::uint64_t small_ones = 8;

void posts_among_completions(Test& test, Channel& control) {
  const GuardedBuffer buffer(largest);
  buffer.poison();
  weft::MemoryRegion region;
  SideOptions options;
  options.endpoint.receive_depth = 64;
  options.prepared = [&](weft::Context& context, weft::Endpoint& endpoint) {
    region = context.register_memory(buffer.bytes(), Access::local_write);
    for (std::uint64_t i = 0; i < small_ones; ++i)
      REQUIRE_EQ(endpoint.receive(region.slice(0, 64), i), Status::ok);
  };
  Side side = accept_side(test, control, std::move(options));
  control.barrier();
  // Long enough for all to have arrived, and for whoever serves absent programs to have found rest again.
  pause(500ms);
  REQUIRE_EQ(side.endpoint.receive(region.whole(), small_ones), Status::ok);
  control.barrier();
  // The other side has seen its sends complete, without any call on this one.
  control.barrier();
  for (std::uint64_t i = 0; i <= small_ones; ++i) {
    const Completion received = side.completions.next_of(Operation::receive);
    CHECK_EQ(received.status, Status::ok);
    CHECK_EQ(received.context, i);
    CHECK_EQ(received.bytes, i < small_ones ? 64 : largest);
  }
  CHECK_EQ(buffer.difference(test.seed()), "");
  control.barrier();
}

CONFORMANCE_TEST(OPS, 3, a_receive_posted_among_completions_not_yet_taken_is_used, with_peer) {
  Peer peer = test.start_peer(posts_among_completions);
  Side side = connect_side(test, peer.control());
  const GuardedBuffer buffer(largest);
  buffer.fill(test.seed());
  weft::MemoryRegion region = side.region(buffer, Access::none);
  // So that the sends rely on receives known to be there, where a provider makes a difference.
  static_cast<void>(side.completions.all_within(100ms));
  for (std::uint64_t i = 0; i <= small_ones; ++i) {
    const Segment segment = i < small_ones ? region.slice(0, 64) : region.whole();
    REQUIRE_EQ(post_when_possible(side.completions, [&] { return side.endpoint.send(segment, i); }),
               Status::ok);
  }
  peer.control().barrier();
  peer.control().barrier();
  for (std::uint64_t i = 0; i <= small_ones; ++i) {
    const Completion sent = side.completions.next_of(Operation::send);
    CHECK_EQ(sent.status, Status::ok);
    CHECK_EQ(sent.context, i);
  }
  peer.control().barrier();
  peer.control().barrier();
  peer.finish();
}

CONFORMANCE_TEST(OPS, 3, what_waits_holds_up_neither_the_peers_operations_nor_other_endpoints, alone) {
  Loop loop = make_loop(test);
  weft::EndpointOptions options;
  options.queue = loop.near.queue();
  weft::Endpoint other_near = loop.context.connect(loop.listener.address(), options);
  options.queue = loop.far.queue();
  weft::Endpoint other_far = next_request(loop.far, loop.listener).accept(options);
  other_near.wait_up(patience);
  other_far.wait_up(patience);

  const GuardedBuffer large(largest);
  const GuardedBuffer arrived(largest);
  const GuardedBuffer memory(4096);
  const GuardedBuffer local(4096);
  weft::MemoryRegion large_region = loop.region(large);
  weft::MemoryRegion arrived_region = loop.region(arrived);
  weft::MemoryRegion memory_region = loop.region(memory, Access::remote_read | Access::remote_write);
  weft::MemoryRegion local_region = loop.region(local);
  const weft::RemoteMemory remote = loop.far_endpoint.import_memory(memory_region.key());
  // Near's sends find no receive, until nothing more is taken.
  Status status = Status::ok;
  int taken = 0;
  while (taken < 1000 && (status = loop.near_endpoint.send(large_region.whole(), 1)) == Status::ok) ++taken;
  CHECK_EQ(status, Status::again);
  pause(100ms);
  // The peer's own operations on that endpoint go on, ...
  for (int i = 0; i < 10; ++i) {
    REQUIRE_EQ(loop.far_endpoint.write(local_region.whole(), remote.at(0), 2), Status::ok);
    CHECK_EQ(loop.far.next_of(Operation::write).status, Status::ok);
    REQUIRE_EQ(loop.far_endpoint.read(local_region.whole(), remote.at(0), 3), Status::ok);
    CHECK_EQ(loop.far.next_of(Operation::read).status, Status::ok);
    check_ping(loop.context, loop.far_endpoint, loop.far, loop.near_endpoint, loop.near);
  }
  // ... and so do other endpoints.
  for (int i = 0; i < 10; ++i) {
    check_ping(loop.context, other_near, loop.near, other_far, loop.far);
    check_ping(loop.context, other_far, loop.far, other_near, loop.near);
  }
  // Nothing was lost meanwhile.
  for (int i = 0; i < taken; ++i) {
    REQUIRE_EQ(loop.far_endpoint.receive(arrived_region.whole(), 4), Status::ok);
    const Completion received = loop.far.next_of(Operation::receive, loop.far_endpoint);
    REQUIRE_EQ(received.status, Status::ok);
    CHECK_EQ(received.bytes, largest);
  }
}

// Accepts a connection and posts nothing for a while.
void a_slow_reader(Test& test, Channel& control) {
  Side side = accept_side(test, control);
  const std::size_t before = resident_bytes();
  const auto taken = control.receive_value<std::uint64_t>(60s);
  CHECK_LE(resident_bytes(), before + (std::size_t{64} << 20)) << "memory of the receiving process grew";
  const GuardedBuffer buffer(4096);
  weft::MemoryRegion region = side.region(buffer);
  for (std::uint64_t i = 0; i < taken; ++i) {
    REQUIRE_EQ(side.endpoint.receive(region.whole(), i), Status::ok);
    const Completion received = side.completions.next_of(Operation::receive);
    REQUIRE_EQ(received.status, Status::ok);
    CHECK_EQ(buffer.at<std::uint64_t>(0), i);
  }
  CHECK_EQ(list(side.completions.all_within(100ms)), "(none)");
  control.barrier();
}

CONFORMANCE_TEST(OPS, 3, what_is_accepted_without_a_receive_is_bounded, with_process) {
  Peer peer = test.start_process_peer(a_slow_reader);
  SideOptions options;
  options.endpoint.send_depth = 128;
  Side side = connect_side(test, peer.control(), options);
  const weft::Limits limits = side.endpoint.limits();
  const std::size_t before = resident_bytes();
  constexpr std::size_t slots = 8192;
  const GuardedBuffer buffer(slots * 4096);
  weft::MemoryRegion region = side.region(buffer);
  std::uint64_t taken = 0;
  Clock::time_point last_taken = Clock::now();
  while (Clock::now() - last_taken < 1500ms) {
    const std::size_t slot = (taken % slots) * 4096;
    buffer.at<std::uint64_t>(slot) = taken;
    const Status status = side.endpoint.send(region.slice(slot, 4096), taken);
    if (status == Status::ok) {
      ++taken;
      last_taken = Clock::now();
      REQUIRE_LE(taken, slots);
      continue;
    }
    REQUIRE_EQ(status, Status::again);
    side.completions.collect();
    pause(1ms);
  }
  // The queue's depth, and the stated window, in messages of this size; one may be on its way on either side.
  CHECK_LE(taken, limits.send_depth + limits.unexpected_bytes / 4096 + 2)
      << "depth " << limits.send_depth << ", window " << limits.unexpected_bytes;
  CHECK_LE(resident_bytes(), before + (std::size_t{64} << 20) + slots * 4096);
  peer.control().send_value(taken);
  for (std::uint64_t i = 0; i < taken; ++i) CHECK_EQ(side.completions.next_of(Operation::send).context, i);
  peer.control().barrier(60s);
  peer.finish();
}

// Both send before either receives; sizes are unequal on the two sides.
constexpr std::size_t crossing_sizes[] = {1024, 65536, 1 << 20, 1 << 20, 333};

void cross(const Test& test, Side& side, Channel& control, bool connected) {
  for (std::size_t round = 0; round < std::size(crossing_sizes); ++round) {
    const std::size_t others[] = {round, std::size(crossing_sizes) - 1 - round};
    const std::size_t mine = crossing_sizes[others[connected ? 0 : 1]];
    const std::size_t its = crossing_sizes[others[connected ? 1 : 0]];
    const GuardedBuffer out(mine);
    const GuardedBuffer in(its);
    out.fill(test.seed() + (connected ? 1 : 2));
    in.poison();
    weft::MemoryRegion out_region = side.region(out, Access::none);
    weft::MemoryRegion in_region = side.region(in);
    const Stopwatch watch;
    REQUIRE_EQ(side.endpoint.send(out_region.whole(), 1), Status::ok);
    CHECK_LE(watch.without_stalls(), 1s);
    control.barrier();
    REQUIRE_EQ(side.endpoint.receive(in_region.whole(), 2), Status::ok);
    control.barrier();
    CHECK_EQ(side.completions.next_of(Operation::send).status, Status::ok);
    CHECK_EQ(side.completions.next_of(Operation::receive).bytes, its);
    CHECK_EQ(in.difference(test.seed() + (connected ? 2 : 1)), "");
    control.barrier();
  }
}

CONFORMANCE_TEST(OPS, 3, large_messages_may_cross_before_either_has_a_receive, with_peer) {
  Peer peer = test.start_peer([](Test& t, Channel& control) {
    Side side = accept_side(t, control);
    cross(t, side, control, false);
  });
  Side side = connect_side(test, peer.control());
  cross(test, side, peer.control(), true);
  peer.finish();
}

constexpr std::size_t immediate_sizes[] = {0, 1, 8, 64, 4096, 65537, 1 << 20};

void takes_immediates(Test& test, Channel& control) {
  Side side = accept_side(test, control);
  const GuardedBuffer memory(largest);
  weft::MemoryRegion region = side.region(memory, Access::remote_write);
  give_key(control, region);
  for (const std::size_t size : immediate_sizes) {
    memory.poison();
    REQUIRE_EQ(
        side.endpoint.post_receives(std::vector<weft::ReceiveRequest>{{.context = size, .segments = {}}})
            .status,
        Status::ok);
    control.barrier();
    const Completion received = side.completions.next();
    CHECK_EQ(received.operation, Operation::receive);
    CHECK_EQ(received.status, Status::ok);
    CHECK_EQ(received.context, size);
    CHECK(received.has_immediate);
    CHECK_EQ(received.immediate, 0xfedc0000U + static_cast<std::uint32_t>(size));
    REQUIRE_EQ(received.bytes, size);
    CHECK_EQ(pattern_difference(memory.bytes(largest - size, size), test.seed() + size), "")
        << size << " bytes";
    CHECK_EQ(memory.touched(0, largest - size), "");
  }
  control.barrier();
  // Without a receive it waits.
  CHECK_EQ(list(side.completions.all_within(500ms)), "(none)");
  REQUIRE_EQ(side.endpoint.receive(Segment{}, 1), Status::ok);
  CHECK_EQ(side.completions.next().immediate, 77);
  control.barrier();
}

CONFORMANCE_TEST(OPS, 4, write_with_immediate_places_data_then_takes_a_receive, with_peer) {
  Peer peer = test.start_peer(takes_immediates);
  Side side = connect_side(test, peer.control());
  const weft::RemoteMemory remote = side.take_key(peer.control());
  const GuardedBuffer buffer(largest);
  weft::MemoryRegion region = side.region(buffer);
  for (const std::size_t size : immediate_sizes) {
    fill_pattern(buffer.bytes(0, size), test.seed() + size);
    peer.control().barrier();
    REQUIRE_EQ(side.endpoint.write_with_immediate(region.slice(0, size), remote.at(largest - size),
                                                  0xfedc0000U + static_cast<std::uint32_t>(size), size),
               Status::ok);
    const Completion written = side.completions.next();
    CHECK_EQ(written.operation, Operation::write_with_immediate);
    CHECK_EQ(written.status, Status::ok);
    CHECK_EQ(written.context, size);
    CHECK_EQ(written.bytes, size);
  }
  REQUIRE_EQ(side.endpoint.write_with_immediate(region.slice(0, 8), remote.at(0), 77, 1), Status::ok);
  peer.control().barrier();
  CHECK_EQ(side.completions.next().status, Status::ok);
  peer.control().barrier();
  peer.finish();
}

CONFORMANCE_TEST(OPS, 4, a_send_may_carry_an_immediate, alone) {
  Loop loop = make_loop(test);
  const GuardedBuffer source(65536);
  const GuardedBuffer target(65536);
  source.fill(test.seed());
  weft::MemoryRegion source_region = loop.region(source);
  weft::MemoryRegion target_region = loop.region(target);
  for (const std::size_t size : {0U, 1U, 32U, 4096U, 65536U}) {
    for (const std::uint32_t immediate : {0U, 1U, 0x01020304U, UINT32_MAX}) {
      target.poison();
      REQUIRE_EQ(loop.far_endpoint.receive(target_region.whole(), 1), Status::ok);
      REQUIRE_EQ(loop.near_endpoint.send_with_immediate(source_region.slice(0, size), immediate, 2),
                 Status::ok);
      const Completion received = loop.far.next();
      CHECK(received.has_immediate);
      CHECK_EQ(received.immediate, immediate);
      REQUIRE_EQ(received.bytes, size);
      CHECK_EQ(pattern_difference(target.bytes(0, size), test.seed()), "");
      CHECK_EQ(loop.near.next().status, Status::ok);
    }
    if (size > 0 && size <= 32) {
      REQUIRE_EQ(loop.far_endpoint.receive(target_region.whole(), 1), Status::ok);
      REQUIRE_EQ(loop.near_endpoint.send_with_immediate(Segment::inline_bytes(source.data(), size), 9, 2,
                                                        Flags::inline_data),
                 Status::ok);
      const Completion received = loop.far.next();
      CHECK(received.has_immediate) << "inline";
      CHECK_EQ(received.immediate, 9);
      CHECK_EQ(loop.near.next().status, Status::ok);
    }
    REQUIRE_EQ(loop.far_endpoint.receive(target_region.whole(), 1), Status::ok);
    REQUIRE_EQ(loop.near_endpoint.send(source_region.slice(0, size), 2), Status::ok);
    CHECK(!loop.far.next().has_immediate);
    CHECK_EQ(loop.near.next().status, Status::ok);
  }
}

}  // namespace
}  // namespace conformance
