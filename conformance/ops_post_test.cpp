// OPS-1, OPS-2, OPS-6, OPS-10: what posting answers, batches, inline data, contexts.
#include <sys/mman.h>

#include <algorithm>
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
using weft::WorkRequest;

// Posts sends of `size` bytes until `again`; how many were taken.
std::uint64_t fill_send_side(weft::Endpoint& endpoint, const Segment& segment, Completions& completions) {
  std::uint64_t taken = 0;
  const Deadline deadline(20s);
  Clock::time_point last_taken = Clock::now();
  // What the library still moves on by itself settles within a second.
  while (Clock::now() - last_taken < 1s && !deadline.passed()) {
    const Status status = endpoint.send(segment, taken);
    if (status == Status::ok) {
      ++taken;
      last_taken = Clock::now();
      continue;
    }
    REQUIRE_EQ(status, Status::again) << "after " << taken << " sends";
    completions.collect();
    pause(1ms);
  }
  return taken;
}

CONFORMANCE_TEST(OPS, 1, a_full_queue_answers_again_and_only_that, alone) {
  SideOptions options;
  options.endpoint.send_depth = 64;
  options.endpoint.receive_depth = 1024;
  Loop loop = make_loop(test, options);
  const GuardedBuffer buffer(4096);
  buffer.fill(test.seed());
  weft::MemoryRegion region = loop.region(buffer);
  const weft::Limits limits = loop.near_endpoint.limits();
  const std::uint64_t taken = fill_send_side(loop.near_endpoint, region.whole(), loop.near);
  CHECK_GE(taken, limits.send_depth);
  for (int i = 0; i < 1000; ++i) REQUIRE_EQ(loop.near_endpoint.send(region.whole(), 0), Status::again);
  // What can never work is told even now.
  const std::vector<Segment> too_many(limits.max_segments + 1, region.slice(0, 1));
  WorkRequest request;
  request.segments = too_many;
  CHECK_EQ(loop.near_endpoint.post(request), Status::invalid_argument);
  const std::vector<std::byte> bytes(limits.max_inline + 1);
  CHECK_EQ(loop.near_endpoint.send(Segment::inline_bytes(bytes.data(), bytes.size()), 0, Flags::inline_data),
           Status::too_big);
  // The receiver drains: exactly the accepted ones arrive, in order, with one completion each.
  const GuardedBuffer target(4096);
  weft::MemoryRegion target_region = loop.region(target);
  for (std::uint64_t i = 0; i < taken; ++i) {
    target.poison();
    REQUIRE_EQ(loop.far_endpoint.receive(target_region.whole(), i), Status::ok);
    const Completion received = loop.far.next_of(Operation::receive);
    REQUIRE_EQ(received.status, Status::ok);
    CHECK_EQ(received.bytes, 4096);
    if (i % 16 == 0) {
      CHECK_EQ(target.difference(test.seed()), "");
    }
  }
  for (std::uint64_t i = 0; i < taken; ++i) CHECK_EQ(loop.near.next_of(Operation::send).context, i);
  CHECK_EQ(list(loop.far.all_within(100ms)), "(none)");
  check_ping(loop);
}

CONFORMANCE_TEST(OPS, 1, receives_beyond_the_depth_answer_again, alone) {
  SideOptions options;
  options.endpoint.receive_depth = 8;
  Loop loop = make_loop(test, options);
  const GuardedBuffer buffer(64);
  weft::MemoryRegion region = loop.region(buffer);
  const std::uint32_t depth = loop.far_endpoint.limits().receive_depth;
  CHECK_GE(depth, 8);
  std::uint32_t taken = 0;
  Status status = Status::ok;
  while (taken <= depth && (status = loop.far_endpoint.receive(region.whole(), taken)) == Status::ok) ++taken;
  CHECK_EQ(taken, depth);
  CHECK_EQ(status, Status::again);
  // What can never work is told even now.
  CHECK_EQ(loop.far_endpoint.receive(region.slice(60, 8), taken), Status::invalid_argument);
  REQUIRE_EQ(loop.near_endpoint.send(region.slice(0, 1), 0), Status::ok);
  CHECK_EQ(loop.far.next_of(Operation::receive).context, 0);
  CHECK_EQ(loop.far_endpoint.receive(region.whole(), taken), Status::ok);
}

CONFORMANCE_TEST(OPS, 1, nonsense_is_invalid_and_the_endpoint_lives, alone) {
  Loop loop = make_loop(test);
  const GuardedBuffer buffer(64);
  weft::MemoryRegion region = loop.region(buffer);
  const Segment segment = region.slice(0, 8);
  for (const Operation operation :
       {Operation::receive, Operation::connect, Operation::connection_request, Operation::endpoint_ended,
        Operation::low_water, static_cast<Operation>(200)}) {
    WorkRequest request;
    request.operation = operation;
    request.segments = std::span(&segment, 1);
    const Status status = loop.near_endpoint.post(request);
    CHECK(status == Status::invalid_argument || status == Status::unsupported) << weft::to_string(status);
  }
  CHECK_EQ(list(loop.near.all_within(50ms)), "(none)");
  check_ping(loop);
}

CONFORMANCE_TEST(OPS, 1, after_the_end_every_post_answers_not_connected, alone) {
  Loop loop = make_loop(test);
  const GuardedBuffer buffer(4096);
  weft::MemoryRegion region = loop.region(
      buffer, Access::local_write | Access::remote_read | Access::remote_write | Access::remote_atomic);
  const weft::RemoteMemory remote = loop.near_endpoint.import_memory(region.key());
  loop.near_endpoint.abort();
  (void)loop.near.until_ended(loop.near_endpoint);
  const Segment segment = region.slice(0, 8);
  weft::Endpoint& endpoint = loop.near_endpoint;
  for (int round = 0; round < 100; ++round) {
    CHECK_EQ(endpoint.send(segment, 1), Status::not_connected);
    CHECK_EQ(endpoint.send(Segment::inline_bytes("x", 1), 1, Flags::inline_data), Status::not_connected);
    CHECK_EQ(endpoint.send_with_immediate(segment, 5, 1), Status::not_connected);
    CHECK_EQ(endpoint.write(segment, remote.at(0), 1), Status::not_connected);
    CHECK_EQ(endpoint.write_with_immediate(segment, remote.at(0), 5, 1), Status::not_connected);
    CHECK_EQ(endpoint.read(segment, remote.at(0), 1), Status::not_connected);
    CHECK_EQ(endpoint.fetch_add(segment, remote.at(0), 1, 1), Status::not_connected);
    CHECK_EQ(endpoint.compare_swap(segment, remote.at(0), 1, 1, 1), Status::not_connected);
    CHECK_EQ(endpoint.flush(1), Status::not_connected);
    CHECK_EQ(endpoint.receive(segment, 1), Status::not_connected);
  }
  CHECK_EQ(list(loop.near.all_within(50ms)), "(none)");
  const auto error = error_of([&] { (void)endpoint.import_memory(region.key()); });
  CHECK(error && error->code() == Status::not_connected);
}

CONFORMANCE_TEST(OPS, 1, posting_answers_at_once_whatever_the_peer_does, alone) {
  Loop loop = make_loop(test);
  constexpr std::size_t size = 1 << 20;
  const GuardedBuffer buffer(size);
  weft::MemoryRegion region = loop.region(buffer);
  int taken = 0;
  for (int i = 0; i < 200; ++i) {
    const Stopwatch watch;
    const Status status = loop.near_endpoint.send(region.whole(), 1, Flags::unsignalled);
    CHECK_LE(watch.without_stalls(), 100ms);
    if (status == Status::ok) ++taken;
  }
  CHECK_GE(taken, 1);
  loop.near_endpoint.abort();
}

CONFORMANCE_TEST(OPS, 2, a_batch_is_taken_in_order, alone) {
  Loop loop = make_loop(test);
  const std::size_t count =
      std::min({64U, loop.near_endpoint.limits().send_depth, loop.far_endpoint.limits().receive_depth});
  constexpr std::size_t size = 40;
  const GuardedBuffer source(count * size);
  const GuardedBuffer target(count * size);
  source.fill(test.seed());
  target.poison();
  weft::MemoryRegion source_region = loop.region(source);
  weft::MemoryRegion target_region = loop.region(target);
  std::vector<Segment> sources(count);
  std::vector<Segment> targets(count);
  std::vector<WorkRequest> sends(count);
  std::vector<weft::ReceiveRequest> receives(count);
  for (std::size_t i = 0; i < count; ++i) {
    sources[i] = source_region.slice(i * size, size);
    targets[i] = target_region.slice(i * size, size);
    sends[i].context = 1000 + i;
    sends[i].segments = std::span(&sources[i], 1);
    receives[i].context = 2000 + i;
    receives[i].segments = std::span(&targets[i], 1);
  }
  const weft::PostResult received = loop.far_endpoint.post_receives(receives);
  CHECK_EQ(received.status, Status::ok);
  CHECK_EQ(received.accepted, count);
  const weft::PostResult sent = loop.near_endpoint.post(sends);
  CHECK_EQ(sent.status, Status::ok);
  CHECK_EQ(sent.accepted, count);
  for (std::size_t i = 0; i < count; ++i) {
    CHECK_EQ(loop.far.next().context, 2000 + i);
    CHECK_EQ(loop.near.next().context, 1000 + i);
  }
  CHECK_EQ(target.difference(test.seed()), "");
  const weft::PostResult nothing = loop.near_endpoint.post(std::span<const WorkRequest>());
  CHECK_EQ(nothing.status, Status::ok);
  CHECK_EQ(nothing.accepted, 0);
}

CONFORMANCE_TEST(OPS, 2, a_batch_stops_at_the_first_request_not_taken, alone) {
  Loop loop = make_loop(test);
  const GuardedBuffer buffer(64);
  const GuardedBuffer target(64);
  weft::MemoryRegion region = loop.region(buffer);
  weft::MemoryRegion target_region = loop.region(target);
  const Segment good = region.slice(0, 8);
  const Segment bad = region.slice(60, 8);
  for (std::size_t wrong = 0; wrong < 8; ++wrong) {
    std::vector<WorkRequest> sends(8);
    std::vector<weft::ReceiveRequest> receives(8);
    for (std::size_t i = 0; i < 8; ++i) {
      sends[i].context = receives[i].context = i;
      sends[i].segments = receives[i].segments = std::span(i == wrong ? &bad : &good, 1);
    }
    const weft::PostResult sent = loop.near_endpoint.post(sends);
    CHECK_EQ(sent.status, Status::invalid_argument);
    CHECK_EQ(sent.accepted, wrong);
    const weft::PostResult received = loop.far_endpoint.post_receives(receives);
    CHECK_EQ(received.status, Status::invalid_argument);
    CHECK_EQ(received.accepted, wrong);
    for (std::size_t i = 0; i < wrong; ++i) {
      CHECK_EQ(loop.near.next().context, i);
      CHECK_EQ(loop.far.next().context, i);
    }
  }
  CHECK_EQ(list(loop.near.all_within(50ms)), "(none)");
  check_ping(loop);
}

CONFORMANCE_TEST(OPS, 2, a_batch_larger_than_the_room_is_taken_in_part, alone) {
  SideOptions options;
  options.endpoint.send_depth = 16;
  options.endpoint.receive_depth = 64;
  Loop loop = make_loop(test, options);
  const std::uint32_t depth = loop.far_endpoint.limits().receive_depth;
  const GuardedBuffer buffer(64);
  weft::MemoryRegion region = loop.region(buffer);
  const Segment segment = region.slice(0, 8);
  std::vector<weft::ReceiveRequest> receives(depth + 5);
  for (auto& receive : receives) receive.segments = std::span(&segment, 1);
  const weft::PostResult received = loop.far_endpoint.post_receives(receives);
  CHECK_EQ(received.status, Status::again);
  CHECK_EQ(received.accepted, depth);
  constexpr std::size_t size = 100'000;
  const GuardedBuffer large(size);
  weft::MemoryRegion large_region = loop.region(large);
  const Segment large_segment = large_region.whole();
  std::vector<WorkRequest> sends(5000);
  for (std::size_t i = 0; i < sends.size(); ++i) {
    sends[i].context = i;
    // Few bytes for the receives that are posted; what follows finds none.
    sends[i].segments = std::span(i < depth ? &segment : &large_segment, 1);
  }
  const weft::PostResult sent = loop.near_endpoint.post(sends);
  CHECK_EQ(sent.status, Status::again);
  CHECK_GE(sent.accepted, 1);
  CHECK_LT(sent.accepted, sends.size());
  loop.near_endpoint.abort();
}

CONFORMANCE_TEST(OPS, 6, inline_bytes_are_copied_at_post, with_peer) {
  Peer peer = test.start_peer([](Test& t, Channel& control) {
    Side side = accept_side(t, control);
    const auto most = control.receive_value<std::uint32_t>();
    const GuardedBuffer buffer(most);
    weft::MemoryRegion region = side.region(buffer);
    for (std::uint32_t size = 0; size <= most; ++size) {
      buffer.poison();
      REQUIRE_EQ(side.endpoint.receive(region.whole(), size), Status::ok);
      control.barrier();
      const Completion received = side.completions.next_of(Operation::receive);
      CHECK_EQ(received.status, Status::ok);
      REQUIRE_EQ(received.bytes, size);
      CHECK_EQ(pattern_difference(buffer.bytes(0, size), t.seed() + size), "") << size << " bytes inline";
    }
    control.barrier();
  });
  SideOptions options;
  options.endpoint.max_inline = 1 << 20;  // more than any device has: what it has shows in the limits
  Side side = connect_side(test, peer.control(), options);
  const std::uint32_t most = side.endpoint.limits().max_inline;
  CHECK_GE(most, 32);
  const std::uint32_t tried = std::min<std::uint32_t>(most, 1024);
  peer.control().send_value(tried);
  const GuardedBuffer buffer(std::size_t{most} + 1);
  for (std::uint32_t size = 0; size <= tried; ++size) {
    fill_pattern(buffer.bytes(0, size), test.seed() + size);
    peer.control().barrier();
    REQUIRE_EQ(side.endpoint.send(Segment::inline_bytes(buffer.data(), size), size, Flags::inline_data),
               Status::ok);
    buffer.poison();
    CHECK_EQ(side.completions.next_of(Operation::send).context, size);
  }
  CHECK_EQ(
      side.endpoint.send(Segment::inline_bytes(buffer.data(), std::size_t{most} + 1), 0, Flags::inline_data),
      Status::too_big);
  peer.control().barrier();
  peer.finish();
}

CONFORMANCE_TEST(OPS, 6, inline_from_a_region_and_in_pieces, alone) {
  Loop loop = make_loop(test);
  const GuardedBuffer source(32);
  const GuardedBuffer target(64);
  weft::MemoryRegion source_region = loop.region(source, Access::none);
  weft::MemoryRegion target_region = loop.region(target, Access::local_write | Access::remote_write);
  const weft::RemoteMemory remote = loop.near_endpoint.import_memory(target_region.key());
  source.fill(test.seed());
  target.poison();
  const Segment pieces[] = {source_region.slice(0, 10), Segment::inline_bytes(source.data() + 10, 22)};
  WorkRequest request;
  request.flags = Flags::inline_data;
  request.segments = pieces;
  REQUIRE_EQ(loop.far_endpoint.receive(target_region.slice(0, 32), 1), Status::ok);
  REQUIRE_EQ(loop.near_endpoint.post(request), Status::ok);
  request.operation = Operation::write;
  request.remote = remote.at(32);
  REQUIRE_EQ(loop.near_endpoint.post(request), Status::ok);
  source.poison();
  REQUIRE_EQ(loop.near_endpoint.flush(2), Status::ok);
  CHECK_EQ(loop.far.next().bytes, 32);
  for (const Completion& completion : loop.near.take(3)) CHECK_EQ(completion.status, Status::ok);
  CHECK_EQ(pattern_difference(target.bytes(0, 32), test.seed()), "");
  CHECK_EQ(pattern_difference(target.bytes(32, 32), test.seed()), "");
}

CONFORMANCE_TEST(OPS, 10, contexts_are_opaque, alone) {
  Loop loop = make_loop(test);
  const GuardedBuffer buffer(4096);
  const GuardedBuffer remote_buffer(4096);
  weft::MemoryRegion region = loop.region(buffer);
  weft::MemoryRegion remote_region = loop.region(remote_buffer, Access::remote_read | Access::remote_write);
  const weft::RemoteMemory remote = loop.near_endpoint.import_memory(remote_region.key());
  // One past a buffer's end lies a page that nobody may touch.
  const auto forbidden = reinterpret_cast<std::uint64_t>(buffer.data() + buffer.size());
  for (const std::uint64_t context : {std::uint64_t{0}, std::uint64_t{1}, UINT64_MAX, forbidden}) {
    const Segment segment = region.slice(0, 64);
    REQUIRE_EQ(loop.far_endpoint.receive(region.slice(64, 64), context), Status::ok);
    REQUIRE_EQ(loop.far_endpoint.receive(region.slice(64, 64), context), Status::ok);
    const auto post = [&](auto&& one) { REQUIRE_EQ(post_when_possible(loop.near, one), Status::ok); };
    post([&] { return loop.near_endpoint.send(segment, context); });
    post([&] { return loop.near_endpoint.write(segment, remote.at(0), context); });
    post([&] { return loop.near_endpoint.write_with_immediate(segment, remote.at(0), 5, context); });
    post([&] { return loop.near_endpoint.read(segment, remote.at(0), context); });
    post([&] { return loop.near_endpoint.flush(context); });
    for (const Operation operation : {Operation::send, Operation::write, Operation::write_with_immediate,
                                      Operation::read, Operation::flush}) {
      const Completion completion = loop.near.next();
      CHECK_EQ(completion.context, context);
      CHECK_EQ(completion.operation, operation);
    }
    for (const Completion& completion : loop.far.take(2)) CHECK_EQ(completion.context, context);
  }
  // Sixty-four that share one, on a fabric as deep.
  const std::uint32_t count = std::min(64U, loop.far_endpoint.limits().receive_depth);
  for (std::uint32_t i = 0; i < count; ++i) {
    REQUIRE_EQ(loop.far_endpoint.receive(region.slice(0, 64), 7), Status::ok);
    REQUIRE_EQ(post_when_possible(loop.near, [&] { return loop.near_endpoint.send(region.slice(0, 64), 7); }),
               Status::ok);
  }
  for (const Completion& completion : loop.near.take(count)) CHECK_EQ(completion.context, 7);
  for (const Completion& completion : loop.far.take(count)) CHECK_EQ(completion.context, 7);
  CHECK_EQ(list(loop.near.all_within(50ms)), "(none)");
}

}  // namespace
}  // namespace conformance
