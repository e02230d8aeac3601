// OPS-5, OPS-11: read, write, flush.
#include <string>
#include <vector>

#include "harness/side.hpp"

namespace conformance {
namespace {

using weft::Access;
using weft::Completion;
using weft::Flags;
using weft::Operation;
using weft::Status;

constexpr std::size_t area = (1 << 20) + 64;
constexpr std::size_t sizes[] = {1, 7, 8, 63, 64, 65, 1000, 4096, 65535, 65536, 65537, 1 << 20};

// Offers memory and makes no library call while the other side works on it.
void offers_memory(Test& test, Channel& control) {
  Side side = accept_side(test, control);
  const GuardedBuffer memory(area);
  weft::MemoryRegion region = side.region(memory, Access::remote_read | Access::remote_write);
  give_key(control, region);
  for (const std::size_t size : sizes) {
    memory.poison();
    control.barrier();
    control.barrier();  // the write has completed, and a flush behind it
    const std::size_t offset = (area - size) / 2;
    CHECK_EQ(pattern_difference(memory.bytes(offset, size), test.seed() + size), "") << "write of " << size;
    CHECK_EQ(memory.touched(0, offset), "") << "before a write of " << size;
    CHECK_EQ(memory.touched(offset + size, area - offset - size), "") << "after a write of " << size;
    memory.fill(test.seed() + size + 1);
    control.barrier();
    control.barrier();  // the read has completed
    CHECK_EQ(memory.difference(test.seed() + size + 1), "") << "a read changed the memory";
  }
  CHECK_EQ(list(side.completions.all_within(10ms)), "(none)")
      << "one-sided operations are silent at the target";
  control.barrier();
}

CONFORMANCE_TEST(OPS, 5, writes_and_reads_of_many_sizes, with_peer) {
  Peer peer = test.start_peer(offers_memory);
  Side side = connect_side(test, peer.control());
  const weft::RemoteMemory remote = side.take_key(peer.control());
  for (const std::size_t size : sizes) {
    const GuardedBuffer local(size);
    weft::MemoryRegion region = side.region(local);
    const std::size_t offset = (area - size) / 2;
    local.fill(test.seed() + size);
    peer.control().barrier();
    REQUIRE_EQ(side.endpoint.write(region.whole(), remote.at(offset), size), Status::ok);
    const Completion written = side.completions.next();
    CHECK_EQ(written.operation, Operation::write);
    CHECK_EQ(written.status, Status::ok);
    CHECK_EQ(written.context, size);
    CHECK_EQ(written.bytes, size);
    REQUIRE_EQ(side.endpoint.flush(1), Status::ok);
    CHECK_EQ(side.completions.next().operation, Operation::flush);
    local.poison();
    peer.control().barrier();
    peer.control().barrier();
    REQUIRE_EQ(side.endpoint.read(region.whole(), remote.at(offset), size), Status::ok);
    const Completion read = side.completions.next();
    CHECK_EQ(read.operation, Operation::read);
    CHECK_EQ(read.status, Status::ok);
    CHECK_EQ(read.bytes, size);
    CHECK_EQ(pattern_difference(local.bytes(), test.seed() + size + 1, offset), "") << "read of " << size;
    peer.control().barrier();
  }
  peer.control().barrier();
  peer.finish();
}

CONFORMANCE_TEST(OPS, 5, many_reads_at_once_all_complete, with_peer) {
  constexpr std::size_t count = 256;
  constexpr std::size_t size = 3000;
  Peer peer = test.start_peer([](Test& t, Channel& control) {
    Side side = accept_side(t, control);
    const GuardedBuffer memory(count * size);
    memory.fill(t.seed());
    weft::MemoryRegion region = side.region(memory, Access::remote_read);
    give_key(control, region);
    control.barrier();
  });
  SideOptions options;
  options.endpoint.send_depth = count;
  Side side = connect_side(test, peer.control(), options);
  const weft::RemoteMemory remote = side.take_key(peer.control());
  const GuardedBuffer local(count * size);
  local.poison();
  weft::MemoryRegion region = side.region(local);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = (i * 37 % count) * size;
    const Status status = post_when_possible(
        side.completions, [&] { return side.endpoint.read(region.slice(at, size), remote.at(at), i); });
    REQUIRE_EQ(status, Status::ok);
  }
  for (std::size_t i = 0; i < count; ++i) {
    const Completion read = side.completions.next_of(Operation::read);
    CHECK_EQ(read.context, i);
    CHECK_EQ(read.status, Status::ok);
  }
  CHECK_EQ(local.difference(test.seed()), "");
  peer.control().barrier();
  peer.finish();
}

CONFORMANCE_TEST(OPS, 5, one_sided_operations_within_one_region_of_ones_own, alone) {
  Loop loop = make_loop(test);
  const GuardedBuffer memory(8192);
  memory.fill(test.seed());
  weft::MemoryRegion region =
      loop.region(memory, Access::local_write | Access::remote_read | Access::remote_write);
  const weft::RemoteMemory remote = loop.near_endpoint.import_memory(region.key());
  REQUIRE_EQ(loop.near_endpoint.write(region.slice(0, 4096), remote.at(4096), 1), Status::ok);
  CHECK_EQ(loop.near.next().status, Status::ok);
  REQUIRE_EQ(loop.near_endpoint.flush(2), Status::ok);
  CHECK_EQ(loop.near.next().status, Status::ok);
  CHECK_EQ(pattern_difference(memory.bytes(0, 4096), test.seed()), "");
  CHECK_EQ(pattern_difference(memory.bytes(4096, 4096), test.seed()), "");
}

CONFORMANCE_TEST(OPS, 11, flush_makes_earlier_writes_visible, with_peer) {
  constexpr std::size_t count = 64;
  constexpr std::size_t size = 5000;
  constexpr int rounds = 20;
  Peer peer = test.start_peer([](Test& t, Channel& control) {
    Side side = accept_side(t, control);
    const GuardedBuffer memory(count * size);
    weft::MemoryRegion region = side.region(memory, Access::remote_write);
    give_key(control, region);
    for (int round = 0; round < rounds; ++round) {
      memory.poison();
      control.barrier();
      control.barrier();
      CHECK_EQ(memory.difference(t.seed() + static_cast<unsigned>(round)), "") << "round " << round;
    }
    control.barrier();
  });
  SideOptions options;
  options.endpoint.send_depth = 2 * count;
  Side side = connect_side(test, peer.control(), options);
  const weft::RemoteMemory remote = side.take_key(peer.control());
  const GuardedBuffer local(count * size);
  weft::MemoryRegion region = side.region(local);
  for (int round = 0; round < rounds; ++round) {
    local.fill(test.seed() + static_cast<unsigned>(round));
    peer.control().barrier();
    for (std::size_t i = 0; i < count; ++i) {
      REQUIRE_EQ(post_when_possible(side.completions,
                                    [&] {
                                      return side.endpoint.write(region.slice(i * size, size),
                                                                 remote.at(i * size), i, Flags::unsignalled);
                                    }),
                 Status::ok);
    }
    REQUIRE_EQ(post_when_possible(side.completions, [&] { return side.endpoint.flush(4711); }), Status::ok);
    const Completion flushed = side.completions.next();
    CHECK_EQ(flushed.operation, Operation::flush);
    CHECK_EQ(flushed.status, Status::ok);
    CHECK_EQ(flushed.context, 4711);
    CHECK_EQ(flushed.bytes, 0);
    peer.control().barrier();
  }
  peer.control().barrier();
  peer.finish();
}

CONFORMANCE_TEST(OPS, 11, flush_works_alone_and_unsignalled, alone) {
  Loop loop = make_loop(test);
  REQUIRE_EQ(loop.near_endpoint.flush(1), Status::ok);
  REQUIRE_EQ(loop.near_endpoint.flush(2, Flags::unsignalled), Status::ok);
  REQUIRE_EQ(loop.far_endpoint.flush(3), Status::ok);
  REQUIRE_EQ(loop.near_endpoint.flush(4), Status::ok);
  CHECK_EQ(loop.near.next().context, 1);
  CHECK_EQ(loop.near.next().context, 4);
  CHECK_EQ(loop.far.next().context, 3);
  CHECK_EQ(list(loop.near.all_within(50ms)), "(none)");
}

}  // namespace
}  // namespace conformance
