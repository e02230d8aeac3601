// CMP for operations that fail.
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

constexpr std::uint64_t user_value = 0xabcdef0123456789;

CONFORMANCE_TEST(CMP, 1, what_fails_completes_once_on_both_sides, alone) {
  for (int round = 0; round < 4; ++round) {
    Loop loop = make_loop(test);
    const GuardedBuffer buffer(4096);
    weft::MemoryRegion region = loop.region(buffer);
    constexpr std::uint64_t receives = 5;
    for (std::uint64_t i = 0; i < receives; ++i) {
      REQUIRE_EQ(loop.far_endpoint.receive(region.slice(64 * i, 64), 10 + i), Status::ok);
      REQUIRE_EQ(loop.near_endpoint.receive(region.slice(64 * i, 64), 20 + i), Status::ok);
    }
    // Too long for its receive: it is at fault, the others are cancelled.
    REQUIRE_EQ(loop.near_endpoint.send(region.slice(0, 100), 30), Status::ok);
    const auto near = loop.near.until_ended(loop.near_endpoint);
    const auto far = loop.far.until_ended(loop.far_endpoint);
    std::map<std::uint64_t, int> seen;
    for (const auto* all : {&near, &far})
      for (const Completion& completion : *all) ++seen[completion.context];
    for (std::uint64_t i = 0; i < receives; ++i) {
      CHECK_EQ(seen[10 + i], 1) << list(far);
      CHECK_EQ(seen[20 + i], 1) << list(near);
    }
    CHECK_EQ(seen[30], 1) << list(near);
    CHECK_EQ(list(loop.near.all_within(10ms)), "(none)");
    CHECK_EQ(list(loop.far.all_within(10ms)), "(none)");
  }
}

CONFORMANCE_TEST(CMP, 3, a_failed_receive_s_buffer_is_left_alone_afterwards, alone) {
  Loop loop = make_loop(test);
  weft::EndpointOptions options;
  options.queue = loop.near.queue();
  weft::Endpoint other_near = loop.context.connect(loop.listener.address(), options);
  options.queue = loop.far.queue();
  weft::Endpoint other_far = next_request(loop.far, loop.listener).accept(options);
  other_near.wait_up(patience);
  other_far.wait_up(patience);
  const GuardedBuffer buffer(4096);
  const GuardedBuffer source(4096);
  weft::MemoryRegion region = loop.region(buffer);
  weft::MemoryRegion source_region = loop.region(source);
  for (std::uint64_t i = 0; i < 4; ++i)
    REQUIRE_EQ(loop.far_endpoint.receive(region.slice(1024 * i, 1024), i), Status::ok);
  REQUIRE_EQ(loop.near_endpoint.send(source_region.slice(0, 1000), 1), Status::ok);
  CHECK_EQ(loop.far.next().status, Status::ok);
  REQUIRE_EQ(loop.near_endpoint.send(source_region.slice(0, 2000), 2), Status::ok);
  CHECK_EQ(loop.far.until_ended(loop.far_endpoint).size(), 4);
  buffer.poison();
  // The other endpoint's life goes on beside it.
  for (int i = 0; i < 5; ++i) check_ping(loop.context, other_near, loop.near, other_far, loop.far);
  pause(30ms);
  loop.near.collect();
  loop.far.collect();
  CHECK_EQ(buffer.touched(), "");
}

CONFORMANCE_TEST(CMP, 5, failures_of_every_operation_tell_what_they_were, alone) {
  SideOptions options;
  options.endpoint.user_value = user_value;
  Loop loop = make_loop(test, options);
  constexpr std::size_t size = 1 << 20;
  const GuardedBuffer memory(size);
  const GuardedBuffer local(size);
  weft::MemoryRegion memory_region =
      loop.region(memory, Access::remote_read | Access::remote_write | Access::remote_atomic);
  weft::MemoryRegion region = loop.region(local);
  const weft::RemoteMemory remote = loop.near_endpoint.import_memory(memory_region.key());
  // A send without a receive, and behind it one of each.
  constexpr Operation kinds[] = {
      Operation::send,      Operation::write_with_immediate, Operation::write, Operation::read,
      Operation::fetch_add, Operation::compare_swap,         Operation::flush};
  const Segment whole = region.whole();
  const Segment word = region.slice(0, 8);
  std::vector<Operation> posted;
  for (const Operation operation : kinds) {
    const bool atomic = operation == Operation::fetch_add || operation == Operation::compare_swap;
    weft::WorkRequest request;
    request.operation = operation;
    request.context = posted.size();
    request.remote = remote.at(0);
    if (operation != Operation::flush) request.segments = std::span(atomic ? &word : &whole, 1);
    REQUIRE_EQ(post_soon([&] { return loop.near_endpoint.post(request); }), Status::ok)
        << weft::to_string(operation);
    posted.push_back(operation);
  }
  loop.near_endpoint.abort();
  const auto all = loop.near.until_ended(loop.near_endpoint);
  REQUIRE_EQ(all.size(), posted.size() + 1) << list(all);
  for (std::size_t i = 0; i < posted.size(); ++i) {
    CHECK_EQ(all[i].operation, posted[i]) << list(all);
    CHECK_EQ(all[i].context, i) << list(all);
    CHECK_EQ(all[i].user_value, user_value);
    CHECK_EQ(all[i].endpoint_id, loop.near_endpoint.id());
    if (all[i].status != Status::ok) CHECK_EQ(all[i].bytes, 0) << list(all);
  }
}

CONFORMANCE_TEST(CMP, 7, nothing_outside_a_failed_receive_changes, alone) {
  Loop loop = make_loop(test);
  const GuardedBuffer buffer(512);
  const GuardedBuffer source(512);
  source.fill(test.seed());
  weft::MemoryRegion region = loop.region(buffer);
  weft::MemoryRegion source_region = loop.region(source);
  buffer.poison();
  REQUIRE_EQ(loop.far_endpoint.receive(region.slice(64, 64), 1), Status::ok);
  REQUIRE_EQ(loop.far_endpoint.receive(region.slice(256, 64), 2), Status::ok);
  REQUIRE_EQ(loop.near_endpoint.send(source_region.slice(0, 300), 3), Status::ok);
  const auto all = loop.far.until_ended(loop.far_endpoint);
  REQUIRE_EQ(all.size(), 3U) << list(all);
  CHECK_EQ(all[0].status, Status::truncated);
  CHECK_EQ(all[1].status, Status::cancelled);
  for (const Completion& completion : all) CHECK_EQ(completion.bytes, 0);
  CHECK_EQ(buffer.touched(0, 64), "");
  CHECK_EQ(buffer.touched(128, 128), "");
  CHECK_EQ(buffer.touched(320, 192), "");
}

CONFORMANCE_TEST(CMP, 7, what_fails_has_taken_effect_once_at_most, alone) {
  for (int round = 0; round < 10; ++round) {
    Loop loop = make_loop(test);
    const GuardedBuffer memory(8);
    const GuardedBuffer local(8);
    memory.at<std::uint64_t>(0) = 0;
    weft::MemoryRegion memory_region = loop.region(memory, Access::remote_atomic);
    weft::MemoryRegion region = loop.region(local);
    const weft::RemoteMemory remote = loop.near_endpoint.import_memory(memory_region.key());
    std::uint64_t posted = 0;
    while (posted < 20 && loop.near_endpoint.fetch_add(region.whole(), remote.at(0), 1, posted) == Status::ok)
      ++posted;
    CHECK_GE(posted, 1);
    // Some rounds end while they are on their way, others when they are over but not taken.
    pause(Duration(round * 2ms));
    loop.near_endpoint.abort();
    std::uint64_t done = 0;
    for (const Completion& completion : loop.near.until_ended(loop.near_endpoint))
      if (completion.operation == Operation::fetch_add && completion.status == Status::ok) ++done;
    (void)loop.far.until_ended(loop.far_endpoint);
    const std::uint64_t added = memory.at<std::uint64_t>(0);
    CHECK_LE(added, posted) << "round " << round;
    CHECK_GE(added, done) << "round " << round;
  }
}

}  // namespace
}  // namespace conformance
