// OPS-5: 64-bit atomics.
#include <algorithm>
#include <vector>

#include "harness/side.hpp"

namespace conformance {
namespace {

using weft::Access;
using weft::Completion;
using weft::Operation;
using weft::Status;

constexpr Access everything =
    Access::local_write | Access::remote_read | Access::remote_write | Access::remote_atomic;

CONFORMANCE_TEST(OPS, 5, fetch_add_and_compare_swap_return_the_old_value, alone) {
  Loop loop = make_loop(test);
  const GuardedBuffer memory(64);
  const GuardedBuffer result(8);
  weft::MemoryRegion memory_region = loop.region(memory, Access::remote_atomic);
  weft::MemoryRegion result_region = loop.region(result);
  CHECK(memory_region.atomic_scope() != weft::AtomicScope::none);
  CHECK(result_region.atomic_scope() == weft::AtomicScope::none);
  const weft::RemoteMemory remote = loop.near_endpoint.import_memory(memory_region.key());
  weft::Endpoint& endpoint = loop.near_endpoint;
  auto& old = result.at<std::uint64_t>(0);
  for (const std::size_t offset : {0U, 8U, 56U}) {
    auto& value = memory.at<std::uint64_t>(offset);
    const auto finish = [&](Operation operation, std::uint64_t context) {
      const Completion completion = loop.near.next();
      CHECK_EQ(completion.operation, operation);
      REQUIRE_EQ(completion.status, Status::ok);
      CHECK_EQ(completion.context, context);
      CHECK_EQ(completion.bytes, 8);
      REQUIRE_EQ(endpoint.flush(9), Status::ok);
      CHECK_EQ(loop.near.next().operation, Operation::flush);
    };
    value = UINT64_MAX - 1;
    REQUIRE_EQ(endpoint.fetch_add(result_region.whole(), remote.at(offset), 3, 1), Status::ok);
    finish(Operation::fetch_add, 1);
    CHECK_EQ(old, UINT64_MAX - 1);
    CHECK_EQ(value, 1) << "addition wraps";
    REQUIRE_EQ(endpoint.compare_swap(result_region.whole(), remote.at(offset), 1, 0x0102030405060708, 2),
               Status::ok);
    finish(Operation::compare_swap, 2);
    CHECK_EQ(old, 1);
    CHECK_EQ(value, 0x0102030405060708U);
    REQUIRE_EQ(endpoint.compare_swap(result_region.whole(), remote.at(offset), 1, 5, 3), Status::ok);
    finish(Operation::compare_swap, 3);
    CHECK_EQ(old, 0x0102030405060708U) << "the value found";
    CHECK_EQ(value, 0x0102030405060708U) << "no swap when it differs";
    // All 64 bits count, of what is added and of what is compared.
    REQUIRE_EQ(endpoint.fetch_add(result_region.whole(), remote.at(offset), 0x1111111122222222, 4),
               Status::ok);
    finish(Operation::fetch_add, 4);
    CHECK_EQ(value, 0x121314152728292aU);
    REQUIRE_EQ(endpoint.compare_swap(result_region.whole(), remote.at(offset), 0x2728292a, 6, 5), Status::ok);
    finish(Operation::compare_swap, 5);
    CHECK_EQ(old, 0x121314152728292aU);
    CHECK_EQ(value, 0x121314152728292aU) << "half of it is not all of it";
    REQUIRE_EQ(endpoint.compare_swap(result_region.whole(), remote.at(offset), 0x121314152728292a,
                                     0x3132333435363738, 6),
               Status::ok);
    finish(Operation::compare_swap, 6);
    CHECK_EQ(value, 0x3132333435363738U);
  }
}

CONFORMANCE_TEST(OPS, 5, misaligned_or_straddling_atomics_are_invalid_at_post, alone) {
  Loop loop = make_loop(test);
  const GuardedBuffer memory(64);
  const GuardedBuffer result(16);
  memory.poison();
  weft::MemoryRegion region = loop.region(memory, everything);
  weft::MemoryRegion result_region = loop.region(result);
  const weft::RemoteMemory remote = loop.near_endpoint.import_memory(region.key());
  weft::Endpoint& endpoint = loop.near_endpoint;
  for (const std::uint64_t offset :
       {1UL, 4UL, 7UL, 9UL, 57UL, 60UL, 63UL, 64UL, 72UL, UINT64_MAX - 7, UINT64_MAX}) {
    CHECK_EQ(endpoint.fetch_add(result_region.slice(0, 8), remote.at(offset), 1, 1), Status::invalid_argument)
        << offset;
    CHECK_EQ(endpoint.compare_swap(result_region.slice(0, 8), remote.at(offset), 1, 2, 1),
             Status::invalid_argument)
        << offset;
  }
  for (const std::size_t length : {0U, 4U, 7U, 9U, 16U}) {
    CHECK_EQ(endpoint.fetch_add(result_region.slice(0, length), remote.at(0), 1, 1), Status::invalid_argument)
        << "a result of " << length << " bytes";
  }
  // It is the address that counts: a region that begins at an odd place shifts the offsets.
  weft::MemoryRegion shifted = loop.context.register_memory(memory.data() + 4, std::size_t{32}, everything);
  const weft::RemoteMemory shifted_remote = loop.near_endpoint.import_memory(shifted.key());
  CHECK_EQ(endpoint.fetch_add(result_region.slice(0, 8), shifted_remote.at(0), 0, 1),
           Status::invalid_argument);
  CHECK_EQ(list(loop.near.all_within(100ms)), "(none)");
  CHECK_EQ(memory.touched(), "");
  REQUIRE_EQ(endpoint.fetch_add(result_region.slice(0, 8), shifted_remote.at(4), 0, 1), Status::ok);
  CHECK_EQ(loop.near.next().status, Status::ok);
  check_ping(loop);
}

std::uint64_t additions_of(const Test& test) { return test.rounds(5000, 16); }

void adds(Test& test, Channel& control) {
  Side side = connect_side(test, control);
  const weft::RemoteMemory remote = side.take_key(control);
  constexpr std::size_t window = 64;
  const GuardedBuffer results(8 * window);
  weft::MemoryRegion region = side.region(results);
  std::vector<std::uint64_t> seen;
  const std::uint64_t additions = additions_of(test);
  control.barrier();
  for (std::uint64_t posted = 0, done = 0; done < additions;) {
    if (posted < additions && posted - done < window) {
      const Status status =
          side.endpoint.fetch_add(region.slice(8 * (posted % window), 8), remote.at(8), 1, posted);
      if (status == Status::ok) {
        ++posted;
        continue;
      }
      REQUIRE_EQ(status, Status::again);
    }
    const Completion completion = side.completions.next();
    REQUIRE_EQ(completion.status, Status::ok);
    REQUIRE_EQ(completion.context, done);
    seen.push_back(results.at<std::uint64_t>(8 * (done % window)));
    ++done;
  }
  CHECK(std::is_sorted(seen.begin(), seen.end())) << "one endpoint's own additions see growing values";
  // Too many for one message of the control channel: in pieces.
  for (std::size_t at = 0; at < seen.size(); at += 1000) {
    control.send(std::as_bytes(std::span(seen).subspan(at, std::min<std::size_t>(1000, seen.size() - at))));
  }
  control.barrier();
}

CONFORMANCE_TEST(OPS, 5, additions_of_two_initiators_are_atomic, with_peer) {
  Peer peers[] = {test.start_peer(adds), test.start_peer(adds)};
  Side first = accept_side(test, peers[0].control());
  weft::Endpoint second = accept_one(first, peers[1].control());
  const GuardedBuffer memory(16);
  memory.at<std::uint64_t>(8) = 1000;
  weft::MemoryRegion region = first.region(memory, Access::remote_atomic);
  for (Peer& peer : peers) give_key(peer.control(), region);
  for (Peer& peer : peers) peer.control().barrier();
  std::vector<std::uint64_t> seen;
  const std::uint64_t additions = additions_of(test);
  for (Peer& peer : peers) {
    for (std::uint64_t at = 0; at < additions; at += 1000) {
      const std::string bytes = peer.control().receive(30s);
      for (std::size_t i = 0; i < bytes.size(); i += 8) {
        std::uint64_t value = 0;
        std::memcpy(&value, bytes.data() + i, 8);
        seen.push_back(value);
      }
    }
  }
  std::sort(seen.begin(), seen.end());
  REQUIRE_EQ(seen.size(), 2 * additions);
  bool all_once = true;
  for (std::uint64_t i = 0; i < seen.size(); ++i) all_once = all_once && seen[i] == 1000 + i;
  CHECK(all_once) << "every old value is returned exactly once";
  CHECK_EQ(memory.at<std::uint64_t>(8), 1000 + 2 * additions);
  for (Peer& peer : peers) peer.control().barrier();
  for (Peer& peer : peers) peer.finish();
}

}  // namespace
}  // namespace conformance
