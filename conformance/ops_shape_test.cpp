// OPS-7, OPS-8, OPS-9: segments, zero lengths, limits.
#include <sys/mman.h>
#include <unistd.h>

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

WorkRequest request_for(Operation operation, std::span<const Segment> segments,
                        weft::RemoteSegment remote = {}) {
  WorkRequest request;
  request.operation = operation;
  request.segments = segments;
  request.remote = remote;
  request.context = 7;
  return request;
}

// Pieces of unequal length that cover [0, size) of a region in order.
std::vector<Segment> pieces(const weft::MemoryRegion& region, std::size_t size, std::size_t count) {
  std::vector<Segment> segments;
  std::size_t at = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t left = size - at;
    const std::size_t length = i + 1 == count ? left : std::min(left, size / count + (i % 2 == 0 ? 3 : 0));
    segments.push_back(region.slice(at, length));
    at += length;
  }
  return segments;
}

CONFORMANCE_TEST(OPS, 7, scatter_and_gather_on_every_operation, alone) {
  Loop loop = make_loop(test);
  const std::size_t most = loop.near_endpoint.limits().max_segments;
  CHECK_GE(most, 4);
  constexpr std::size_t largest = 300'000;
  const GuardedBuffer source(largest);
  const GuardedBuffer target(largest);
  source.fill(test.seed());
  weft::MemoryRegion source_region = loop.region(source);
  weft::MemoryRegion target_region = loop.region(target, Access::local_write | Access::remote_write);
  weft::MemoryRegion readable = loop.region(source, Access::remote_read);
  const weft::RemoteMemory remote = loop.near_endpoint.import_memory(target_region.key());
  const weft::RemoteMemory remote_source = loop.near_endpoint.import_memory(readable.key());
  const auto arrived = [&](std::size_t size) {
    CHECK_EQ(pattern_difference(target.bytes(0, size), test.seed()), "");
    CHECK_EQ(target.touched(size, largest - size), "");
    target.poison();
  };
  target.poison();
  for (const std::size_t count : {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{4}, most}) {
    for (const std::size_t size : {std::size_t{100}, std::size_t{5000}, largest}) {
      const auto from = pieces(source_region, size, count);
      const auto into = pieces(target_region, size, count == 1 ? 1 : count - 1);
      weft::ReceiveRequest receive;
      receive.segments = into;
      REQUIRE_EQ(loop.far_endpoint.post_receives(std::span(&receive, 1)).status, Status::ok);
      REQUIRE_EQ(loop.near_endpoint.post(request_for(Operation::send, from)), Status::ok);
      CHECK_EQ(loop.far.next().bytes, size);
      CHECK_EQ(loop.near.next().bytes, size);
      arrived(size);
      REQUIRE_EQ(loop.near_endpoint.post(request_for(Operation::write, from, remote.at(0))), Status::ok);
      CHECK_EQ(loop.near.next().bytes, size);
      REQUIRE_EQ(loop.near_endpoint.flush(1), Status::ok);
      CHECK_EQ(loop.near.next().status, Status::ok);
      arrived(size);
      REQUIRE_EQ(loop.near_endpoint.post(request_for(Operation::read, into, remote_source.at(0))),
                 Status::ok);
      CHECK_EQ(loop.near.next().bytes, size);
      arrived(size);
    }
  }
}

CONFORMANCE_TEST(OPS, 7, one_segment_too_many_is_invalid_at_post, alone) {
  Loop loop = make_loop(test);
  const std::size_t most = loop.near_endpoint.limits().max_segments;
  const GuardedBuffer buffer(4096);
  weft::MemoryRegion region =
      loop.region(buffer, Access::local_write | Access::remote_read | Access::remote_write);
  const weft::RemoteMemory remote = loop.near_endpoint.import_memory(region.key());
  for (const std::size_t count : {most + 1, std::size_t{1025}}) {
    const std::vector<Segment> segments(count, region.slice(0, 1));
    for (const Operation operation :
         {Operation::send, Operation::write, Operation::write_with_immediate, Operation::read}) {
      CHECK_EQ(loop.near_endpoint.post(request_for(operation, segments, remote.at(0))),
               Status::invalid_argument)
          << weft::to_string(operation) << " with " << count << " segments";
    }
    weft::ReceiveRequest receive;
    receive.segments = segments;
    CHECK_EQ(loop.near_endpoint.post_receives(std::span(&receive, 1)).status, Status::invalid_argument);
  }
  check_ping(loop);
}

CONFORMANCE_TEST(OPS, 8, zero_length_messages_take_a_receive, alone) {
  Loop loop = make_loop(test);
  const GuardedBuffer buffer(16);
  weft::MemoryRegion region = loop.region(buffer);
  for (const Flags flags :
       {Flags::none, Flags::inline_data, Flags::unsignalled, Flags::inline_data | Flags::unsignalled}) {
    for (std::uint64_t i = 0; i < 6; ++i) {
      // Receives without a region for those that get nothing.
      REQUIRE_EQ(loop.far_endpoint.receive(i % 2 == 0 ? region.slice(0, 16) : Segment{}, i), Status::ok);
    }
    for (std::uint64_t i = 0; i < 6; ++i) {
      const bool empty = i % 2 != 0;
      const Segment segment = empty                                  ? Segment{}
                              : weft::has(flags, Flags::inline_data) ? Segment::inline_bytes("x", 1)
                                                                     : region.slice(0, 1);
      REQUIRE_EQ(post_soon([&] { return loop.near_endpoint.send(segment, i, flags); }), Status::ok);
    }
    for (std::uint64_t i = 0; i < 6; ++i) {
      const Completion received = loop.far.next();
      CHECK_EQ(received.status, Status::ok);
      CHECK_EQ(received.context, i);
      CHECK_EQ(received.bytes, i % 2 == 0 ? 1 : 0);
      if (weft::has(flags, Flags::unsignalled)) continue;
      CHECK_EQ(loop.near.next().context, i);
    }
  }
  // No segments at all are as good as an empty one.
  weft::ReceiveRequest receive;
  REQUIRE_EQ(loop.far_endpoint.post_receives(std::span(&receive, 1)).status, Status::ok);
  REQUIRE_EQ(loop.near_endpoint.post(request_for(Operation::send, {})), Status::ok);
  CHECK_EQ(loop.far.next().bytes, 0);
  CHECK_EQ(loop.near.next().status, Status::ok);
  CHECK_EQ(list(loop.near.all_within(50ms)), "(none)");
}

CONFORMANCE_TEST(OPS, 8, zero_length_one_sided_operations_change_nothing, alone) {
  Loop loop = make_loop(test);
  const GuardedBuffer target(64);
  target.poison();
  weft::MemoryRegion region = loop.region(target, Access::remote_read | Access::remote_write);
  const weft::RemoteMemory remote = loop.near_endpoint.import_memory(region.key());
  for (const weft::RemoteSegment& place : {remote.at(0), remote.at(64)}) {
    REQUIRE_EQ(loop.near_endpoint.write(Segment{}, place, 1), Status::ok);
    REQUIRE_EQ(loop.near_endpoint.read(Segment{}, place, 2), Status::ok);
    REQUIRE_EQ(loop.far_endpoint.receive(Segment{}, 3), Status::ok);
    REQUIRE_EQ(loop.near_endpoint.write_with_immediate(Segment{}, place, 55, 4), Status::ok);
    CHECK_EQ(loop.near.next().context, 1);
    CHECK_EQ(loop.near.next().context, 2);
    const Completion received = loop.far.next();
    CHECK_EQ(received.immediate, 55);
    CHECK_EQ(received.bytes, 0);
    CHECK_EQ(loop.near.next().context, 4);
  }
  // Nothing is touched, so that no memory needs to be named either.
  REQUIRE_EQ(loop.near_endpoint.write(Segment{}, weft::RemoteSegment{}, 5), Status::ok);
  CHECK_EQ(loop.near.next().context, 5);
  REQUIRE_EQ(loop.near_endpoint.read(Segment{}, weft::RemoteSegment{}, 6), Status::ok);
  CHECK_EQ(loop.near.next().context, 6);
  CHECK_EQ(list(loop.far.all_within(50ms)), "(none)");
  CHECK_EQ(target.touched(), "");
  check_ping(loop);
}

// Address space without memory behind it, for lengths that must be refused before a byte is touched.
class EmptySpace {
 public:
  explicit EmptySpace(std::size_t size) : size_(size) {
    address_ = mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    REQUIRE(address_ != MAP_FAILED) << "no address space of " << size << " bytes";
  }
  ~EmptySpace() { munmap(address_, size_); }
  EmptySpace(const EmptySpace&) = delete;
  EmptySpace& operator=(const EmptySpace&) = delete;
  [[nodiscard]] const void* address() const { return address_; }

 private:
  void* address_ = nullptr;
  std::size_t size_;
};

CONFORMANCE_TEST(OPS, 9, one_byte_past_the_largest_message_is_too_big_at_post, alone) {
  Loop loop = make_loop(test);
  const weft::Limits limits = loop.near_endpoint.limits();
  CHECK_GE(limits.max_message, std::uint64_t{1} << 20);
  CHECK_LT(limits.max_message, std::uint64_t{1} << 63);
  CHECK_GE(limits.max_transfer, std::uint64_t{1} << 40);
  CHECK_LT(limits.max_transfer, std::uint64_t{1} << 63);
  // The length is looked at before the memory is: four segments of one space make it as long as is needed.
  const std::uint64_t past = limits.max_message + 1;
  const std::uint64_t piece = past / 4 + 1;
  const EmptySpace space(piece);
  weft::MemoryRegion region = loop.context.register_memory(space.address(), piece);
  const std::vector<Segment> segments = {region.slice(0, piece), region.slice(0, piece),
                                         region.slice(0, piece), region.slice(0, past - 3 * piece)};
  const GuardedBuffer target(64);
  weft::MemoryRegion target_region = loop.region(target, Access::remote_write);
  const weft::RemoteMemory remote = loop.near_endpoint.import_memory(target_region.key());
  CHECK_EQ(loop.near_endpoint.post(request_for(Operation::send, segments)), Status::too_big);
  const Status status =
      loop.near_endpoint.post(request_for(Operation::write_with_immediate, segments, remote.at(0)));
  CHECK(status == Status::too_big || status == Status::invalid_argument) << weft::to_string(status);
  CHECK_EQ(list(loop.far.all_within(300ms)), "(none)");
  check_ping(loop);
}

CONFORMANCE_TEST(OPS, 9, the_stated_depth_and_inline_size_hold, alone) {
  SideOptions options;
  options.endpoint.send_depth = 24;
  Loop loop = make_loop(test, options);
  const weft::Limits limits = loop.near_endpoint.limits();
  const GuardedBuffer buffer(limits.max_inline + 1);
  weft::MemoryRegion region = loop.region(buffer, Access::remote_write);
  const weft::RemoteMemory remote = loop.near_endpoint.import_memory(region.key());
  const auto write = [&](std::size_t length) {
    return loop.near_endpoint.write(Segment::inline_bytes(buffer.data(), length), remote.at(0), 1,
                                    Flags::inline_data);
  };
  // None is taken meanwhile.
  const std::uint32_t depth = std::min(limits.send_depth, 1024U);
  for (std::uint32_t i = 0; i < depth; ++i)
    REQUIRE_EQ(post_soon([&] { return write(limits.max_inline); }), Status::ok) << i << " of " << depth;
  CHECK_EQ(loop.near.take(depth).size(), depth);
  CHECK_EQ(write(limits.max_inline + 1), Status::too_big);
  CHECK_EQ(list(loop.near.all_within(20ms)), "(none)");
}

constexpr std::uint64_t largest_tried = std::uint64_t{64} << 20;

CONFORMANCE_TEST(OPS, 9, messages_at_and_around_the_limits_arrive_whole, with_peer.within(60s)) {
  Peer peer = test.start_peer([](Test& t, Channel& control) {
    Side side = accept_side(t, control);
    while (const auto size = control.receive_value<std::uint64_t>(60s)) {
      const GuardedBuffer buffer(size);
      weft::MemoryRegion region = side.region(buffer);
      REQUIRE_EQ(side.endpoint.receive(region.whole(), size), Status::ok);
      control.barrier();
      const Completion received = side.completions.next_of(Operation::receive, 30s);
      REQUIRE_EQ(received.status, Status::ok);
      CHECK_EQ(received.bytes, size);
      CHECK_EQ(buffer.difference(t.seed() + size), "") << size << " bytes";
    }
  });
  Side side = connect_side(test, peer.control());
  const weft::Limits limits = side.endpoint.limits();
  std::vector<std::uint64_t> sizes;
  for (const std::uint64_t middle :
       {std::uint64_t{limits.max_inline}, std::uint64_t{256}, std::uint64_t{1024}, std::uint64_t{4096},
        std::uint64_t{8192}, std::uint64_t{16384}, std::uint64_t{32768}, std::uint64_t{65536},
        std::uint64_t{1} << 20}) {
    for (const std::uint64_t size : {middle - 1, middle, middle + 1}) sizes.push_back(size);
  }
  if (limits.max_message <= largest_tried) sizes.push_back(limits.max_message);
  if (test.long_run()) sizes.push_back(largest_tried + 1);
  for (const std::uint64_t size : sizes) {
    if (size > limits.max_message) continue;
    const GuardedBuffer buffer(size);
    buffer.fill(test.seed() + size);
    weft::MemoryRegion region = side.region(buffer, Access::none);
    peer.control().send_value(size);
    peer.control().barrier();
    REQUIRE_EQ(side.endpoint.send(region.whole(), size), Status::ok);
    const Completion sent = side.completions.next_of(Operation::send, 30s);
    CHECK_EQ(sent.status, Status::ok);
    CHECK_EQ(sent.bytes, size);
  }
  peer.control().send_value(std::uint64_t{0});
  peer.finish();
}

// 2 GiB and 4 GiB, where 32-bit lengths wrap. One memory file of 64 MiB, mapped over and over, stands for the
// source.
// Above what a message may have, and no multiple of anything.
CONFORMANCE_TEST(OPS, 9, writes_and_reads_are_longer_than_messages, alone) {
  constexpr std::size_t offset = 5;
  constexpr std::size_t length = (std::size_t{3} << 20) + 7;
  Loop loop = make_loop(test);
  const GuardedBuffer source(length);
  const GuardedBuffer memory(offset + length + 1);
  const GuardedBuffer back(length);
  source.fill(test.seed());
  memory.poison();
  weft::MemoryRegion source_region = loop.region(source);
  weft::MemoryRegion memory_region = loop.region(memory, Access::remote_read | Access::remote_write);
  weft::MemoryRegion back_region = loop.region(back);
  const weft::RemoteMemory remote = loop.near_endpoint.import_memory(memory_region.key());
  const auto write = [&] { return loop.near_endpoint.write(source_region.whole(), remote.at(offset), 1); };
  REQUIRE_EQ(post_when_possible(loop.near, write), Status::ok);
  const Completion written = loop.near.next_of(Operation::write, 30s);
  CHECK_EQ(written.status, Status::ok);
  CHECK_EQ(written.bytes, length);
  const auto read = [&] { return loop.near_endpoint.read(back_region.whole(), remote.at(offset), 2); };
  REQUIRE_EQ(post_when_possible(loop.near, read), Status::ok);
  const Completion fetched = loop.near.next_of(Operation::read, 30s);
  CHECK_EQ(fetched.status, Status::ok);
  CHECK_EQ(fetched.bytes, length);
  CHECK_EQ(back.difference(test.seed()), "");
  CHECK_EQ(pattern_difference(memory.bytes(offset, length), test.seed()), "");
  CHECK_EQ(memory.touched(0, offset), "");
  CHECK_EQ(memory.touched(offset + length, 1), "");
}

CONFORMANCE_TEST(OPS, 9, lengths_around_two_and_four_gibibytes, alone.long_run().within(600s)) {
  constexpr std::size_t piece = std::size_t{64} << 20;
  constexpr std::uint64_t lengths[] = {(1UL << 31) - 1, 1UL << 31, (1UL << 31) + 1,
                                       (1UL << 32) - 1, 1UL << 32, (1UL << 32) + 7};
  constexpr std::size_t space = (std::size_t{1} << 32) + piece;
  Loop loop = make_loop(test);
  const int file = memfd_create("weft-conformance", 0);
  REQUIRE_GE(file, 0);
  REQUIRE_EQ(ftruncate(file, piece), 0);
  auto* base = static_cast<std::byte*>(
      mmap(nullptr, space, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  REQUIRE(base != MAP_FAILED);
  for (std::size_t at = 0; at < space; at += piece) {
    REQUIRE(mmap(base + at, piece, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED);
  }
  fill_pattern({base, piece}, test.seed());
  weft::MemoryRegion source =
      loop.context.register_memory(base, space, Access::remote_read | Access::local_write);
  const weft::RemoteMemory remote = loop.near_endpoint.import_memory(source.key());
  // The target is the same memory: every byte is written with what it is, and must stay so.
  for (const std::uint64_t length : lengths) {
    REQUIRE_EQ(loop.near_endpoint.read(source.slice(0, length), remote.at(0), length), Status::ok);
    const Completion read = loop.near.next(120s);
    CHECK_EQ(read.status, Status::ok);
    CHECK_EQ(read.bytes, length);
    CHECK_EQ(pattern_difference({base, piece}, test.seed()), "");
    if (length > loop.near_endpoint.limits().max_message) {
      CHECK_EQ(loop.near_endpoint.send(source.slice(0, length), 1), Status::too_big);
      continue;
    }
    REQUIRE_EQ(loop.far_endpoint.receive(source.slice(0, length), 2), Status::ok);
    REQUIRE_EQ(loop.near_endpoint.send(source.slice(0, length), 3), Status::ok);
    CHECK_EQ(loop.far.next(120s).bytes, length);
    CHECK_EQ(loop.near.next(120s).bytes, length);
    CHECK_EQ(pattern_difference({base, piece}, test.seed()), "");
  }
  CHECK_EQ(source.deregister(), Status::ok);
  munmap(base, space);
  close(file);
}

}  // namespace
}  // namespace conformance
