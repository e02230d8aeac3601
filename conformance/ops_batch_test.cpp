// OPS-2: batches of all operations and sizes, and what they cost.
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

// How often the context went to its fabric, by the counter that its provider keeps.
std::uint64_t transmissions(const weft::Context& context) {
  std::uint64_t doorbells = 0;
  for (const weft::Counter& counter : context.counters()) {
    if (counter.name == "transmissions") return counter.value;
    if (counter.name == "doorbells") doorbells = counter.value;
  }
  return doorbells;
}

CONFORMANCE_TEST(OPS, 2, a_batch_is_one_doorbell_or_system_call, alone) {
  Loop loop = make_loop(test);
  const weft::Limits limits = loop.near_endpoint.limits();
  const std::size_t count = std::min({24U, limits.send_depth, limits.receive_depth});
  const GuardedBuffer buffer(64);
  weft::MemoryRegion region = loop.region(buffer);
  const Segment segment = region.slice(0, 8);
  std::vector<WorkRequest> sends(count);
  for (WorkRequest& send : sends) send.segments = std::span(&segment, 1);
  std::uint64_t fewest = UINT64_MAX;
  // The helper may go to the fabric as well meanwhile: the best of several counts.
  for (int round = 0; round < 10; ++round) {
    for (std::size_t i = 0; i < count; ++i)
      REQUIRE_EQ(loop.far_endpoint.receive(region.slice(8, 8), i), Status::ok);
    loop.near.collect();
    const std::uint64_t before = transmissions(loop.context);
    const weft::PostResult sent = loop.near_endpoint.post(sends);
    const std::uint64_t after = transmissions(loop.context);
    CHECK_EQ(sent.status, Status::ok);
    REQUIRE_EQ(sent.accepted, count);
    fewest = std::min(fewest, after - before);
    CHECK_EQ(loop.far.take(count).size(), count);
    CHECK_EQ(loop.near.take(count).size(), count);
  }
  CHECK_EQ(fewest, 1) << "for a batch of " << count;
}

CONFORMANCE_TEST(OPS, 2, batches_of_any_size_and_operation_are_taken_in_order, alone) {
  Loop loop = make_loop(test);
  const GuardedBuffer local(4096);
  const GuardedBuffer memory(4096);
  weft::MemoryRegion region = loop.region(local);
  weft::MemoryRegion memory_region =
      loop.region(memory, Access::remote_read | Access::remote_write | Access::remote_atomic);
  const weft::RemoteMemory remote = loop.near_endpoint.import_memory(memory_region.key());
  constexpr Operation kinds[] = {Operation::send,  Operation::write,     Operation::read,
                                 Operation::flush, Operation::fetch_add, Operation::write_with_immediate,
                                 Operation::send};
  const Segment segment = region.slice(0, 8);
  std::uint64_t number = 0;
  for (std::size_t round = 0; round < 60; ++round) {
    std::vector<WorkRequest> batch(1 + round % 9);
    std::vector<std::uint64_t> received;
    for (WorkRequest& request : batch) {
      request.context = number;
      request.operation = kinds[(number++ * 5 + round) % std::size(kinds)];
      request.remote = remote.at(0);
      if (request.operation != Operation::flush) request.segments = std::span(&segment, 1);
      if (request.operation != Operation::send && request.operation != Operation::write_with_immediate)
        continue;
      REQUIRE_EQ(loop.far_endpoint.receive(region.slice(64, 64), request.context), Status::ok);
      received.push_back(request.context);
    }
    std::size_t taken = 0;
    const auto post = [&] {
      const weft::PostResult result = loop.near_endpoint.post(std::span(batch).subspan(taken));
      taken += result.accepted;
      return result.status;
    };
    REQUIRE_EQ(post_when_possible(loop.near, post), Status::ok);
    REQUIRE_EQ(taken, batch.size());
    for (const WorkRequest& request : batch) {
      const Completion done = loop.near.next();
      CHECK_EQ(done.context, request.context) << "round " << round;
      CHECK_EQ(done.operation, request.operation) << "round " << round;
      CHECK_EQ(done.status, Status::ok);
    }
    for (const std::uint64_t context : received) CHECK_EQ(loop.far.next().context, context);
  }
  CHECK_EQ(list(loop.near.all_within(20ms)), "(none)");
  CHECK_EQ(list(loop.far.all_within(20ms)), "(none)");
}

CONFORMANCE_TEST(OPS, 2, a_batch_for_a_shared_queue_is_taken_in_part, alone) {
  weft::Context context = test.open_context();
  Completions completions(context.create_completion_queue());
  weft::ReceiveQueueOptions options;
  options.queue = completions.queue();
  options.depth = 16;
  const GuardedBuffer buffer(64);
  weft::MemoryRegion region = context.register_memory(buffer.bytes(), Access::local_write);
  const Segment good = region.slice(0, 8);
  const Segment bad = region.slice(60, 8);
  weft::ReceiveQueue shared = context.create_receive_queue(options);
  std::vector<weft::ReceiveRequest> receives(8);
  for (std::size_t i = 0; i < receives.size(); ++i)
    receives[i].segments = std::span(i == 5 ? &bad : &good, 1);
  const weft::PostResult stopped = shared.post_receives(receives);
  CHECK_EQ(stopped.status, Status::invalid_argument);
  CHECK_EQ(stopped.accepted, 5);
  receives.assign(16, weft::ReceiveRequest{.segments = std::span(&good, 1)});
  const weft::PostResult part = shared.post_receives(receives);
  CHECK_EQ(part.status, Status::again);
  CHECK_EQ(part.accepted, 11);
  CHECK_EQ(shared.receive(bad, 1), Status::invalid_argument) << "also when it is full";
  CHECK_EQ(list(completions.all_within(10ms)), "(none)");
}

}  // namespace
}  // namespace conformance
