// MEM-3, MEM-4: keys, and accesses that they do not grant.
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

std::vector<std::byte> copy_of(std::span<const std::byte> key) { return {key.begin(), key.end()}; }

bool is_refused(weft::Endpoint& endpoint, std::span<const std::byte> key) {
  const auto error = error_of([&] { (void)endpoint.import_memory(key); });
  return error && error->code() == Status::invalid_argument;
}

CONFORMANCE_TEST(MEM, 3, a_key_carries_range_and_rights, alone) {
  Loop loop = make_loop(test);
  const GuardedBuffer buffer(10'000);
  for (const Access access : {Access::none, Access::remote_read, Access::remote_write, Access::remote_atomic,
                              Access::remote_read | Access::remote_write | Access::local_write}) {
    for (const std::size_t length : {1U, 10'000U}) {
      weft::MemoryRegion region = loop.context.register_memory(buffer.data(), length, access);
      CHECK_EQ(region.length(), length);
      CHECK(region.access() == access);
      CHECK_GE(region.key().size(), 1);
      CHECK_LE(region.key().size(), loop.context.attributes().max_key_size);
      const weft::RemoteMemory remote = loop.near_endpoint.import_memory(region.key());
      CHECK_EQ(remote.length(), length);
      constexpr Access all_remote = Access::remote_read | Access::remote_write | Access::remote_atomic;
      CHECK((remote.access() & all_remote) == (access & all_remote))
          << static_cast<unsigned>(remote.access());
    }
  }
}

CONFORMANCE_TEST(MEM, 3, a_malformed_or_altered_key_is_refused, alone) {
  Loop loop = make_loop(test);
  const GuardedBuffer buffer(4096);
  weft::MemoryRegion region = loop.region(buffer, Access::remote_write);
  const std::vector<std::byte> key = copy_of(region.key());
  for (std::size_t bit = 0; bit < key.size() * 8; ++bit) {
    std::vector<std::byte> altered = key;
    altered[bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
    CHECK(is_refused(loop.near_endpoint, altered)) << "bit " << bit << " flipped";
  }
  for (std::size_t length = 0; length < key.size(); ++length) {
    CHECK(is_refused(loop.near_endpoint, std::span(key).first(length))) << "cut to " << length << " bytes";
  }
  std::vector<std::byte> longer = key;
  longer.push_back(std::byte{0});
  CHECK(is_refused(loop.near_endpoint, longer));
  CHECK(is_refused(loop.near_endpoint, std::vector<std::byte>(100'000)));
  std::vector<std::byte> noise(key.size());
  for (std::uint64_t i = 0; i < 100; ++i) {
    fill_pattern(noise, test.seed() + i);
    CHECK(is_refused(loop.near_endpoint, noise));
  }
  CHECK_EQ(loop.near_endpoint.import_memory(key).length(), 4096);
  check_ping(loop);
}

CONFORMANCE_TEST(MEM, 3, an_imported_key_is_good_on_its_endpoint_only, alone) {
  Loop loop = make_loop(test);
  const GuardedBuffer buffer(64);
  weft::MemoryRegion region = loop.region(buffer, Access::remote_write | Access::local_write);
  weft::RemoteMemory remote = loop.near_endpoint.import_memory(region.key());
  CHECK_EQ(loop.far_endpoint.write(region.whole(), remote.at(0), 1), Status::invalid_argument);
  weft::RemoteSegment made_up = remote.at(0);
  made_up.memory ^= 0x10000;
  CHECK_EQ(loop.near_endpoint.write(region.whole(), made_up, 1), Status::invalid_argument);
  const weft::RemoteSegment dropped = remote.at(0);
  remote = weft::RemoteMemory();
  CHECK_EQ(loop.near_endpoint.write(region.whole(), dropped, 1), Status::invalid_argument);
  check_ping(loop);
}

CONFORMANCE_TEST(MEM, 4, what_the_key_excludes_is_refused_at_post, alone) {
  Loop loop = make_loop(test);
  const GuardedBuffer target(4096);
  const GuardedBuffer local(8192);
  target.poison();
  weft::MemoryRegion local_region = loop.region(local);
  weft::MemoryRegion writable = loop.region(target, Access::remote_write);
  weft::MemoryRegion readable = loop.region(target, Access::remote_read);
  const weft::RemoteMemory write_only = loop.near_endpoint.import_memory(writable.key());
  const weft::RemoteMemory read_only = loop.near_endpoint.import_memory(readable.key());
  weft::Endpoint& endpoint = loop.near_endpoint;
  constexpr std::uint64_t most = UINT64_MAX;
  for (const auto& [offset, length] : {std::pair<std::uint64_t, std::uint64_t>{4095, 2},
                                       {4096, 1},
                                       {0, 4097},
                                       {most, 1},
                                       {most, 2},
                                       {most - 99, 100},
                                       {most - 99, 200},
                                       {1UL << 63, 8}}) {
    const weft::Segment segment = local_region.slice(0, length);
    CHECK_EQ(endpoint.write(segment, write_only.at(offset), 1), Status::invalid_argument)
        << offset << '+' << length;
    CHECK_EQ(endpoint.write_with_immediate(segment, write_only.at(offset), 5, 1), Status::invalid_argument);
    CHECK_EQ(endpoint.read(segment, read_only.at(offset), 1), Status::invalid_argument)
        << offset << '+' << length;
  }
  const weft::Segment word = local_region.slice(0, 8);
  for (int round = 0; round < 20; ++round) {
    CHECK_EQ(endpoint.write(word, read_only.at(0), 1), Status::invalid_argument) << "no right to write";
    CHECK_EQ(
        endpoint.write(weft::Segment::inline_bytes("12345678", 8), read_only.at(0), 1, Flags::inline_data),
        Status::invalid_argument);
    CHECK_EQ(endpoint.write_with_immediate(word, read_only.at(0), 5, 1), Status::invalid_argument);
    CHECK_EQ(endpoint.read(word, write_only.at(0), 1), Status::invalid_argument) << "no right to read";
    for (const weft::RemoteMemory* remote : {&write_only, &read_only}) {
      CHECK_EQ(endpoint.fetch_add(word, remote->at(0), 1, 1), Status::invalid_argument);
      CHECK_EQ(endpoint.compare_swap(word, remote->at(0), 1, 2, 1), Status::invalid_argument);
    }
  }
  CHECK_EQ(list(loop.near.all_within(100ms)), "(none)");
  CHECK_EQ(list(loop.far.all_within(1ms)), "(none)");
  CHECK_EQ(target.touched(), "");
  // At the very edge it works.
  CHECK_EQ(endpoint.write(local_region.slice(0, 1), write_only.at(4095), 1), Status::ok);
  CHECK_EQ(loop.near.next().status, Status::ok);
  CHECK_EQ(endpoint.read(local_region.slice(0, 4096), read_only.at(0), 1), Status::ok);
  CHECK_EQ(loop.near.next().status, Status::ok);
  check_ping(loop);
}

// The target: gives a key away, takes the region back, and sees what happens to its memory and its endpoint.
template <Access granted>
void target_takes_region_back(Test& test, Channel& control) {
  Side side = accept_side(test, control);
  const GuardedBuffer memory(65536);
  memory.poison();
  weft::MemoryRegion region = side.region(memory, granted);
  give_key(control, region);
  control.barrier();
  CHECK_EQ(region.deregister(), Status::ok);
  control.barrier();
  const Completion end = side.completions.until_ended(side.endpoint).back();
  CHECK_EQ(end.status, Status::remote_access_error);
  CHECK_EQ(side.endpoint.cause(), Status::remote_access_error);
  CHECK_EQ(memory.touched(), "") << "a transfer reached memory that was no longer registered";
  control.barrier();
}

template <Access granted>
void access_to_a_region_that_is_gone(Test& test, Operation operation) {
  Peer peer = test.start_peer(target_takes_region_back<granted>);
  Side side = connect_side(test, peer.control());
  const weft::RemoteMemory remote = side.take_key(peer.control());
  const GuardedBuffer local(65536);
  local.fill(test.seed());
  weft::MemoryRegion region = side.region(local);
  peer.control().barrier();
  peer.control().barrier();
  constexpr std::uint64_t context = 0xabcdef;
  switch (operation) {
    case Operation::read:
      REQUIRE_EQ(side.endpoint.read(region.whole(), remote.at(0), context), Status::ok);
      break;
    case Operation::write_with_immediate:
      REQUIRE_EQ(side.endpoint.write_with_immediate(region.whole(), remote.at(0), 5, context), Status::ok);
      break;
    default:
      REQUIRE_EQ(side.endpoint.write(region.whole(), remote.at(0), context), Status::ok);
      break;
  }
  const Status behind = post_soon([&] { return side.endpoint.send(region.slice(0, 8), 77); });
  CHECK(behind == Status::ok || behind == Status::not_connected) << weft::to_string(behind);
  const auto all = side.completions.until_ended(side.endpoint);
  const bool taken = behind == Status::ok;
  REQUIRE_EQ(all.size(), taken ? 3U : 2U) << list(all);
  CHECK_EQ(all[0].operation, operation);
  CHECK_EQ(all[0].status, Status::remote_access_error);
  CHECK_EQ(all[0].context, context);
  CHECK_EQ(all[0].bytes, 0);
  CHECK(!taken || all[1].context == 77) << list(all);
  CHECK(!taken || all[1].status == Status::cancelled) << list(all);
  CHECK_EQ(all.back().status, Status::remote_access_error);
  CHECK_EQ(side.endpoint.send(region.slice(0, 8), 78), Status::not_connected);
  peer.control().barrier();
  peer.finish();
}

CONFORMANCE_TEST(MEM, 4, writing_to_a_region_that_is_gone, with_peer) {
  access_to_a_region_that_is_gone<Access::remote_write>(test, Operation::write);
}

CONFORMANCE_TEST(MEM, 4, writing_with_immediate_to_a_region_that_is_gone, with_peer) {
  access_to_a_region_that_is_gone<Access::remote_write | Access::remote_read>(
      test, Operation::write_with_immediate);
}

CONFORMANCE_TEST(MEM, 4, reading_from_a_region_that_is_gone, with_peer) {
  access_to_a_region_that_is_gone<Access::remote_read>(test, Operation::read);
}

// Writes flow in while the target takes the region back.
void target_takes_region_back_under_writes(Test& test, Channel& control) {
  Side side = accept_side(test, control);
  const GuardedBuffer memory(1 << 20);
  weft::MemoryRegion region = side.region(memory, Access::remote_write);
  give_key(control, region);
  control.barrier();
  pause(50ms);
  const Stopwatch watch;
  Status status = region.deregister();
  while (status == Status::busy && watch.elapsed() < 10s) {
    pause(1ms);
    status = region.deregister();
  }
  CHECK_EQ(status, Status::ok);
  CHECK_LE(watch.without_stalls(), 2s);
  memory.poison();
  control.barrier();
  (void)side.completions.until_ended(side.endpoint);
  CHECK_EQ(memory.touched(), "") << "a transfer reached memory after deregister() was ok";
}

CONFORMANCE_TEST(MEM, 5, the_target_takes_a_region_back_under_writes, with_peer) {
  Peer peer = test.start_peer(target_takes_region_back_under_writes);
  Side side = connect_side(test, peer.control());
  const weft::RemoteMemory remote = side.take_key(peer.control());
  const GuardedBuffer local(1 << 20);
  local.fill(test.seed());
  weft::MemoryRegion region = side.region(local);
  peer.control().barrier();
  std::uint64_t posted = 0;
  const Deadline deadline(10s);
  while (!deadline.passed()) {
    const Status status = side.endpoint.write(region.whole(), remote.at(0), posted);
    REQUIRE(status == Status::ok || status == Status::again || status == Status::not_connected)
        << weft::to_string(status);
    if (status == Status::not_connected) break;
    if (status == Status::ok) ++posted;
    side.completions.collect();
  }
  const auto all = side.completions.until_ended(side.endpoint);
  REQUIRE_EQ(all.size(), posted + 1) << list(all);
  std::size_t faults = 0;
  bool in_order = true;
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    in_order = in_order && all[i].context == i;
    if (all[i].status == Status::remote_access_error) ++faults;
  }
  CHECK(in_order) << list(all);
  CHECK_LE(faults, 1);
  CHECK(all.back().status == Status::remote_access_error || all.back().status == Status::aborted)
      << weft::to_string(all.back().status);
  peer.control().barrier();
  peer.finish();
}

}  // namespace
}  // namespace conformance
