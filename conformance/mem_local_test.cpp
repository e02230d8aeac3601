// MEM-1, MEM-2, MEM-5: registering memory, naming pieces of it, giving it back.
#include <sys/mman.h>

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

CONFORMANCE_TEST(MEM, 1, length_zero_is_invalid, alone) {
  weft::Context context = test.open_context();
  const GuardedBuffer buffer(64);
  for (void* address : {static_cast<void*>(buffer.data()), static_cast<void*>(nullptr)}) {
    const auto error =
        error_of([&] { (void)context.register_memory(address, std::size_t{0}, Access::local_write); });
    CHECK(error && error->code() == Status::invalid_argument);
  }
}

CONFORMANCE_TEST(MEM, 1, read_only_memory_serves_as_source_and_for_remote_reading, alone) {
  Loop loop = make_loop(test);
  const GuardedBuffer source(100'000);
  const GuardedBuffer target(100'000);
  source.fill(test.seed());
  source.protect(false);
  weft::MemoryRegion source_region = loop.region(source, Access::none);
  weft::MemoryRegion readable = loop.region(source, Access::remote_read);
  weft::MemoryRegion target_region = loop.region(target);

  target.poison();
  REQUIRE_EQ(loop.far_endpoint.receive(target_region.whole(), 1), Status::ok);
  REQUIRE_EQ(loop.near_endpoint.send(source_region.whole(), 2), Status::ok);
  CHECK_EQ(loop.far.next_of(Operation::receive).status, Status::ok);
  CHECK_EQ(target.difference(test.seed()), "");

  target.poison();
  const weft::RemoteMemory remote = loop.far_endpoint.import_memory(readable.key());
  REQUIRE_EQ(loop.far_endpoint.read(target_region.whole(), remote.at(0), 3), Status::ok);
  CHECK_EQ(loop.far.next_of(Operation::read).status, Status::ok);
  CHECK_EQ(target.difference(test.seed()), "");

  for (const Access access : {Access::local_write, Access::remote_write, Access::remote_atomic}) {
    const auto error = error_of([&] { (void)loop.region(source, access); });
    REQUIRE(error.has_value()) << "registered read-only memory for writing, access "
                               << static_cast<unsigned>(access);
    CHECK_EQ(error->code(), Status::invalid_argument) << error->what();
  }
  source.protect(true);
}

CONFORMANCE_TEST(MEM, 1, registrations_are_independent, alone) {
  Loop loop = make_loop(test);
  const GuardedBuffer memory(96 * 1024);
  const GuardedBuffer source(4096);
  weft::MemoryRegion source_region = loop.region(source);
  weft::MemoryRegion first =
      loop.context.register_memory(memory.data(), std::size_t{65536}, Access::remote_write);
  weft::MemoryRegion second =
      loop.context.register_memory(memory.data(), std::size_t{65536}, Access::remote_write);
  weft::MemoryRegion third = loop.context.register_memory(memory.data() + 32768, std::size_t{65536},
                                                          Access::remote_write | Access::remote_read);
  std::vector<weft::RemoteMemory> remotes;
  for (const weft::MemoryRegion* region : {&first, &second, &third}) {
    remotes.push_back(loop.near_endpoint.import_memory(region->key()));
    CHECK_EQ(remotes.back().length(), 65536);
    CHECK(remotes.back().access() == region->access());
  }
  CHECK_EQ(first.deregister(), Status::ok);
  CHECK(!static_cast<bool>(first));
  CHECK_EQ(first.deregister(), Status::ok);
  // Those that lie over it serve on, on this side and on the other.
  for (weft::MemoryRegion* region : {&second, &third}) {
    fill_pattern(memory.bytes(40'000, 4096), test.seed() + 7);
    const std::uint64_t offset = region == &second ? 40'000 : 40'000 - 32768;
    REQUIRE_EQ(loop.far_endpoint.receive(source_region.whole(), 8), Status::ok);
    REQUIRE_EQ(loop.near_endpoint.send(region->slice(offset, 4096), 8), Status::ok);
    CHECK_EQ(loop.near.next_of(Operation::send).status, Status::ok);
    CHECK_EQ(loop.far.next_of(Operation::receive).status, Status::ok);
    CHECK_EQ(source.difference(test.seed() + 7), "");
  }
  for (const std::size_t i : {1U, 2U}) {
    source.fill(test.seed() + i);
    REQUIRE_EQ(loop.near_endpoint.write(source_region.whole(), remotes[i].at(1000), i), Status::ok);
    CHECK_EQ(loop.near.next_of(Operation::write).status, Status::ok);
    REQUIRE_EQ(loop.near_endpoint.flush(9), Status::ok);
    CHECK_EQ(loop.near.next_of(Operation::flush).status, Status::ok);
    const std::size_t begin = (i == 2 ? 32768 : 0) + 1000;
    CHECK_EQ(pattern_difference(memory.bytes(begin, 4096), test.seed() + i), "");
  }
}

CONFORMANCE_TEST(MEM, 1, cycles_of_registering_cost_nothing, alone.full()) {
  weft::Context context = test.open_context();
  const GuardedBuffer memory(65536);
  for (int i = 0; i < 10'000; ++i) {
    weft::MemoryRegion region =
        context.register_memory(memory.bytes(), Access::local_write | Access::remote_write);
    REQUIRE_EQ(region.deregister(), Status::ok) << "round " << i;
  }
  CHECK_EQ(context.register_memory(memory.bytes(), Access::none).length(), memory.size());
}

// Every send-side operation and a receive, with this local segment.
std::vector<std::pair<std::string, Status>> post_all(Loop& loop, const Segment& segment,
                                                     weft::RemoteSegment remote) {
  weft::Endpoint& endpoint = loop.near_endpoint;
  return {{"send", endpoint.send(segment, 1)},
          {"write", endpoint.write(segment, remote, 2)},
          {"write_with_immediate", endpoint.write_with_immediate(segment, remote, 7, 3)},
          {"read", endpoint.read(segment, remote, 4)},
          {"receive", endpoint.receive(segment, 5)}};
}

CONFORMANCE_TEST(MEM, 2, segments_outside_their_region_are_refused_at_post, alone) {
  Loop loop = make_loop(test);
  const GuardedBuffer buffer(4096);
  const GuardedBuffer target(8192);
  target.poison();
  weft::MemoryRegion region = loop.region(buffer);
  weft::MemoryRegion target_region = loop.region(target, Access::remote_write | Access::remote_read);
  const weft::RemoteMemory remote = loop.near_endpoint.import_memory(target_region.key());
  constexpr std::uint64_t most = UINT64_MAX;
  for (const auto& [offset, length] : {std::pair<std::uint64_t, std::uint64_t>{0, 4097},
                                       {1, 4096},
                                       {4096, 1},
                                       {4095, 2},
                                       {most, 1},
                                       {most, 2},
                                       {1, most},
                                       {most - 7, 8},
                                       {std::uint64_t{1} << 63, std::uint64_t{1} << 63},
                                       {5000, 4}}) {
    for (const auto& [name, status] : post_all(loop, region.slice(offset, length), remote.at(0))) {
      // A length that no operation may have is just as good a reason.
      CHECK(status == Status::invalid_argument || (status == Status::too_big && length > 4097))
          << name << " of [" << offset << ", +" << length << "): " << weft::to_string(status);
    }
    const auto error = error_of([&, o = offset, l = length] { (void)region.checked_slice(o, l); });
    CHECK(error && error->code() == Status::invalid_argument);
  }
  CHECK_EQ(region.checked_slice(4095, 1).length, 1);
  CHECK_EQ(list(loop.near.all_within(100ms)), "(none)");
  CHECK_EQ(target.touched(), "");
  check_ping(loop);
}

CONFORMANCE_TEST(MEM, 2, segments_of_no_region_are_refused_at_post, alone) {
  Loop loop = make_loop(test);
  const GuardedBuffer buffer(4096);
  const GuardedBuffer target(4096);
  weft::MemoryRegion region = loop.region(buffer);
  weft::MemoryRegion target_region = loop.region(target, Access::remote_write | Access::remote_read);
  const weft::RemoteMemory remote = loop.near_endpoint.import_memory(target_region.key());
  weft::MemoryRegion gone = loop.region(buffer);
  const Segment dead = gone.slice(0, 64);
  CHECK_EQ(gone.deregister(), Status::ok);
  Segment made_up = region.slice(0, 64);
  made_up.region ^= 0x10000;
  Segment none =
      Segment::inline_bytes(buffer.data(), 64);  // without the inline flag an address is not enough
  weft::Context other = test.open_context();
  weft::MemoryRegion foreign = other.register_memory(buffer.bytes(), Access::local_write);
  (void)foreign;
  for (const Segment& segment : {dead, made_up, none}) {
    for (const auto& [name, status] : post_all(loop, segment, remote.at(0))) {
      CHECK_EQ(status, Status::invalid_argument) << name;
    }
  }
  CHECK_EQ(list(loop.near.all_within(100ms)), "(none)");
  check_ping(loop);
}

CONFORMANCE_TEST(MEM, 2, memory_without_local_write_is_never_a_destination, alone) {
  Loop loop = make_loop(test);
  const GuardedBuffer buffer(4096);
  const GuardedBuffer target(4096);
  buffer.poison();
  weft::MemoryRegion region = loop.region(buffer, Access::remote_write | Access::remote_read);
  weft::MemoryRegion target_region = loop.region(target, Access::remote_write | Access::remote_read);
  const weft::RemoteMemory remote = loop.near_endpoint.import_memory(target_region.key());
  CHECK_EQ(loop.near_endpoint.receive(region.slice(0, 64), 1), Status::invalid_argument);
  CHECK_EQ(loop.near_endpoint.read(region.slice(0, 64), remote.at(0), 2), Status::invalid_argument);
  CHECK_EQ(loop.near_endpoint.write(region.slice(0, 64), remote.at(0), 3), Status::ok)
      << "a source needs no right";
  CHECK_EQ(loop.near.next().status, Status::ok);
  CHECK_EQ(buffer.touched(), "");
  check_ping(loop);
}

CONFORMANCE_TEST(MEM, 5, a_region_in_use_is_busy_until_its_operations_are_over, alone) {
  Loop loop = make_loop(test);
  const GuardedBuffer buffer(64);
  const GuardedBuffer other(64);
  weft::MemoryRegion region =
      loop.region(buffer, weft::Access::local_write | weft::Access::remote_write | weft::Access::remote_read);
  weft::MemoryRegion other_region = loop.region(other);
  REQUIRE_EQ(loop.far_endpoint.receive(region.whole(), 1), Status::ok);
  CHECK_EQ(region.deregister(), Status::busy);
  CHECK(static_cast<bool>(region));
  // `busy` changed nothing: the region goes on serving both sides, and stays busy.
  const weft::RemoteMemory remote = loop.near_endpoint.import_memory(region.key());
  REQUIRE_EQ(loop.near_endpoint.write(other_region.slice(0, 8), remote.at(0), 11), Status::ok);
  CHECK_EQ(loop.near.next_of(Operation::write).status, Status::ok);
  REQUIRE_EQ(loop.near_endpoint.read(other_region.slice(0, 8), remote.at(0), 12), Status::ok);
  CHECK_EQ(loop.near.next_of(Operation::read).status, Status::ok);
  REQUIRE_EQ(loop.near_endpoint.receive(region.slice(0, 8), 13), Status::ok);
  REQUIRE_EQ(loop.far_endpoint.send(region.slice(8, 8), 14), Status::ok);
  CHECK_EQ(loop.near.next_of(Operation::receive).status, Status::ok);
  CHECK_EQ(loop.far.next_of(Operation::send).status, Status::ok);
  CHECK_EQ(region.deregister(), Status::busy);
  REQUIRE_EQ(loop.near_endpoint.send(other_region.whole(), 2, Flags::unsignalled), Status::ok);
  // Nothing is polled here: `busy` passes by itself.
  CHECK(eventually(3s, [&] { return other_region.deregister() == Status::ok; }));
  CHECK(eventually(3s, [&] { return region.deregister() == Status::ok; }));
  CHECK_EQ(loop.far.next_of(Operation::receive).status, Status::ok);
}

CONFORMANCE_TEST(MEM, 5, unsignalled_transfers_keep_a_region_only_while_they_last, alone) {
  Loop loop = make_loop(test);
  constexpr std::size_t size = 1 << 20;
  const GuardedBuffer source(size);
  const GuardedBuffer target(size);
  source.fill(test.seed());
  weft::MemoryRegion source_region = loop.region(source);
  weft::MemoryRegion target_region = loop.region(target, Access::remote_write);
  const weft::RemoteMemory remote = loop.near_endpoint.import_memory(target_region.key());
  for (int i = 0; i < 16; ++i) {
    REQUIRE_EQ(loop.near_endpoint.write(source_region.whole(), remote.at(0), 1, Flags::unsignalled),
               Status::ok);
  }
  Status status = source_region.deregister();
  CHECK(status == Status::ok || status == Status::busy) << weft::to_string(status);
  CHECK(eventually(5s, [&] { return (status = source_region.deregister()) != Status::busy; }));
  CHECK_EQ(status, Status::ok);
  source.protect(false);
  source.protect(true);
  source.poison();
  REQUIRE_EQ(loop.near_endpoint.flush(2), Status::ok);
  CHECK_EQ(loop.near.next().operation, Operation::flush);
  CHECK_EQ(target.difference(test.seed()), "")
      << "bytes were taken from the memory after deregister() was ok";
}

}  // namespace
}  // namespace conformance
