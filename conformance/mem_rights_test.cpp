// MEM-1, MEM-2: each right by itself, each segment by itself, and what needs no region at all.
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
using weft::WorkRequest;

CONFORMANCE_TEST(MEM, 1, a_region_grants_what_was_asked_for_and_no_more, alone) {
  Loop loop = make_loop(test);
  const GuardedBuffer memory(4096);
  const GuardedBuffer local(64);
  weft::MemoryRegion local_region = loop.region(local);
  weft::Endpoint& endpoint = loop.near_endpoint;
  for (unsigned rights = 0; rights < 16; ++rights) {
    const auto access = static_cast<Access>(rights);
    const auto allowed = [&](Access right) {
      return weft::has(access, right) ? Status::ok : Status::invalid_argument;
    };
    const auto done = [&](Status posted, const char* what) {
      if (posted == Status::ok)
        CHECK_EQ(loop.near.next().status, Status::ok) << what << ", access " << rights;
    };
    memory.poison();
    weft::MemoryRegion region = loop.region(memory, access);
    CHECK(region.access() == access) << rights;
    const weft::RemoteMemory remote = loop.near_endpoint.import_memory(region.key());

    const Status writing = endpoint.write(local_region.slice(0, 8), remote.at(0), 1);
    CHECK_EQ(writing, allowed(Access::remote_write)) << "write, access " << rights;
    done(writing, "write");
    const Status reading = endpoint.read(local_region.slice(0, 8), remote.at(0), 2);
    CHECK_EQ(reading, allowed(Access::remote_read)) << "read, access " << rights;
    done(reading, "read");
    const Status adding = endpoint.fetch_add(local_region.slice(0, 8), remote.at(0), 1, 3);
    CHECK_EQ(adding, allowed(Access::remote_atomic)) << "fetch_add, access " << rights;
    done(adding, "fetch_add");
    const Status swapping = endpoint.compare_swap(local_region.slice(0, 8), remote.at(0), 1, 2, 4);
    CHECK_EQ(swapping, allowed(Access::remote_atomic)) << "compare_swap, access " << rights;
    done(swapping, "compare_swap");

    // As a source it needs no right, as a place for what comes one that no other brings along.
    const Status receiving = loop.far_endpoint.receive(region.slice(64, 8), 5);
    CHECK_EQ(receiving, allowed(Access::local_write)) << "receive, access " << rights;
    if (receiving != Status::ok) {
      REQUIRE_EQ(loop.far_endpoint.receive(local_region.slice(8, 8), 5), Status::ok);
      CHECK_EQ(loop.near_endpoint.read(region.slice(64, 8), remote.at(0), 6), Status::invalid_argument);
    }
    REQUIRE_EQ(endpoint.send(region.slice(128, 8), 7), Status::ok) << "a source needs no right";
    CHECK_EQ(loop.near.next_of(Operation::send).status, Status::ok);
    CHECK_EQ(loop.far.next_of(Operation::receive).status, Status::ok);
    if (!weft::has(access, Access::remote_write) && !weft::has(access, Access::remote_atomic)) {
      CHECK_EQ(memory.touched(0, 64), "") << "access " << rights;
    }
    if (receiving != Status::ok) CHECK_EQ(memory.touched(64, 4096 - 64), "") << "access " << rights;
  }
}

CONFORMANCE_TEST(MEM, 2, every_segment_is_checked_whatever_its_place, alone) {
  Loop loop = make_loop(test);
  const GuardedBuffer buffer(4096);
  const GuardedBuffer target(4096);
  buffer.poison();
  target.poison();
  weft::MemoryRegion region = loop.region(buffer);
  weft::MemoryRegion source_only = loop.region(buffer, Access::none);
  weft::MemoryRegion target_region =
      loop.region(target, Access::remote_write | Access::remote_read | Access::remote_atomic);
  const weft::RemoteMemory remote = loop.near_endpoint.import_memory(target_region.key());
  for (const Segment& bad : {region.slice(4090, 16), region.slice(UINT64_MAX - 7, 16),
                             Segment::inline_bytes(buffer.data(), 16), Segment{0x7777'0000'0000, 0, 16}}) {
    for (std::size_t place = 0; place < 4; ++place) {
      std::array<Segment, 4> segments = {region.slice(0, 16), region.slice(16, 16), region.slice(32, 16),
                                         region.slice(48, 16)};
      segments[place] = bad;
      for (const Operation operation :
           {Operation::send, Operation::write, Operation::write_with_immediate, Operation::read}) {
        WorkRequest request;
        request.operation = operation;
        request.segments = segments;
        request.remote = remote.at(0);
        CHECK_EQ(loop.near_endpoint.post(request), Status::invalid_argument)
            << weft::to_string(operation) << ", segment " << place;
      }
      const weft::ReceiveRequest receive{1, segments};
      CHECK_EQ(loop.near_endpoint.post_receives({&receive, 1}).status, Status::invalid_argument)
          << "receive, segment " << place;
    }
    const Segment word{bad.region, bad.offset, 8};
    if (bad.offset != 4090) {
      CHECK_EQ(loop.near_endpoint.fetch_add(word, remote.at(0), 1, 1), Status::invalid_argument);
      CHECK_EQ(loop.near_endpoint.compare_swap(word, remote.at(0), 1, 2, 1), Status::invalid_argument);
    }
  }
  // The last of four lacks the right.
  const std::array<Segment, 2> mixed = {region.slice(0, 16), source_only.slice(16, 16)};
  const weft::ReceiveRequest receive{1, mixed};
  CHECK_EQ(loop.near_endpoint.post_receives({&receive, 1}).status, Status::invalid_argument);
  CHECK_EQ(list(loop.near.all_within(100ms)), "(none)");
  CHECK_EQ(list(loop.far.all_within(1ms)), "(none)");
  CHECK_EQ(buffer.touched(), "");
  CHECK_EQ(target.touched(), "");
  check_ping(loop);
}

CONFORMANCE_TEST(MEM, 2, inline_and_empty_operations_need_no_region, alone) {
  Loop loop = make_loop(test);
  const GuardedBuffer target(4096);
  weft::MemoryRegion target_region =
      loop.region(target, Access::local_write | Access::remote_write | Access::remote_read);
  const weft::RemoteMemory remote = loop.near_endpoint.import_memory(target_region.key());
  weft::Endpoint& endpoint = loop.near_endpoint;
  std::array<std::byte, 32> bytes{};
  fill_pattern(bytes, test.seed());
  const Segment plain = Segment::inline_bytes(bytes.data(), bytes.size());
  target.poison();
  REQUIRE_EQ(loop.far_endpoint.receive(target_region.slice(0, 32), 1), Status::ok);
  REQUIRE_EQ(loop.far_endpoint.receive(Segment{}, 2), Status::ok);
  CHECK_EQ(endpoint.send(plain, 1, Flags::inline_data), Status::ok);
  CHECK_EQ(endpoint.write(plain, remote.at(32), 2, Flags::inline_data), Status::ok);
  CHECK_EQ(endpoint.write_with_immediate(plain, remote.at(64), 7, 3, Flags::inline_data), Status::ok);
  for (const Completion& completion : loop.near.take(3)) CHECK_EQ(completion.status, Status::ok);
  for (const Completion& completion : loop.far.take(2)) CHECK_EQ(completion.bytes, 32);
  for (const std::size_t place : {0U, 32U, 64U}) {
    CHECK_EQ(pattern_difference(target.bytes(place, 32), test.seed()), "") << place;
  }
  // Nothing to name: neither a segment, nor a segment of a region.
  target.poison();
  for (const bool has_segment : {true, false}) {
    const Segment empty;
    for (const Operation operation :
         {Operation::send, Operation::write, Operation::write_with_immediate, Operation::read}) {
      WorkRequest request;
      request.operation = operation;
      request.segments = has_segment ? std::span(&empty, 1) : std::span<const Segment>();
      request.remote = remote.at(0);
      const weft::ReceiveRequest receive{9, request.segments};
      const bool takes = operation == Operation::send || operation == Operation::write_with_immediate;
      if (takes) REQUIRE_EQ(loop.far_endpoint.post_receives({&receive, 1}).status, Status::ok);
      REQUIRE_EQ(endpoint.post(request), Status::ok)
          << weft::to_string(operation) << (has_segment ? ", an empty segment" : ", no segment");
      CHECK_EQ(loop.near.next().status, Status::ok) << weft::to_string(operation);
      if (!takes) continue;
      const Completion received = loop.far.next();
      CHECK_EQ(received.status, Status::ok);
      CHECK_EQ(received.bytes, 0);
    }
  }
  CHECK_EQ(target.touched(), "");
}

}  // namespace
}  // namespace conformance
