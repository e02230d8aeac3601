// RCQ: receive queues shared by endpoints.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "harness/side.hpp"

namespace conformance {
namespace {

using weft::Completion;
using weft::Flags;
using weft::Operation;
using weft::Segment;
using weft::Status;

constexpr std::size_t endpoints = 3;

// Several connections whose accepted ends share one receive queue.
struct Shared {
  // Memory for receives outlives the queue they are posted to.
  GuardedBuffer memory{600'000};
  weft::MemoryRegion region;

  explicit Shared(const Test& test, std::uint32_t depth = 64)
      : context(test.open_context()),
        near(context.create_completion_queue()),
        sends(context.create_completion_queue()),
        receives(context.create_completion_queue()) {
    weft::ReceiveQueueOptions queue_options;
    queue_options.queue = receives.queue();
    queue_options.depth = std::min(depth, context.attributes().limits.receive_depth);
    queue_options.user_value = 4242;
    shared = context.create_receive_queue(queue_options);
    region = context.register_memory(memory.bytes(), weft::Access::local_write);
    weft::ListenOptions listen;
    listen.queue = sends.queue();
    listener = context.listen(host_of(context) + ":0", listen);
    for (std::size_t i = 0; i < endpoints; ++i) connect_one_more();
  }

  void connect_one_more() {
    weft::EndpointOptions options;
    options.queue = near.queue();
    near_ends.push_back(context.connect(listener.address(), options));
    options = {};
    options.send_completions = sends.queue();
    options.shared_receives = shared;
    options.user_value = 100 + far_ends.size();
    far_ends.push_back(next_request(sends, listener).accept(options));
    near_ends.back().wait_up(patience);
    far_ends.back().wait_up(patience);
  }

  void send_number(std::size_t endpoint, std::uint64_t number) {
    REQUIRE_EQ(near_ends[endpoint].send(Segment::inline_bytes(&number, sizeof(number)), number,
                                        Flags::inline_data | Flags::unsignalled),
               Status::ok);
  }

  weft::Context context;
  Completions near;
  Completions sends;
  Completions receives;
  weft::ReceiveQueue shared;
  weft::Listener listener;
  std::vector<weft::Endpoint> near_ends;
  std::vector<weft::Endpoint> far_ends;
};

CONFORMANCE_TEST(RCQ, 1, any_endpoint_takes_the_next_receive, alone) {
  Shared scene(test);
  const std::size_t count = std::min(60U, scene.context.attributes().limits.receive_depth);
  const GuardedBuffer& buffer = scene.memory;
  weft::MemoryRegion& region = scene.region;
  for (std::uint64_t i = 0; i < count; ++i)
    REQUIRE_EQ(scene.shared.receive(region.slice(8 * i, 8), i), Status::ok);
  CHECK_EQ(scene.far_ends[0].receive(region.slice(0, 8), 1), Status::unsupported);
  for (std::uint64_t i = 0; i < count; ++i)
    scene.send_number(i % endpoints, 1000 * (i % endpoints) + i / endpoints);
  std::array<std::uint64_t, endpoints> next{};
  std::vector<int> used(count, 0);
  for (std::uint64_t i = 0; i < count; ++i) {
    const Completion received = scene.receives.next();
    CHECK_EQ(received.operation, Operation::receive);
    REQUIRE_EQ(received.status, Status::ok);
    REQUIRE_LE(received.context, count - 1);
    ++used[received.context];
    const std::uint64_t number = buffer.at<std::uint64_t>(8 * received.context);
    const std::size_t endpoint = number / 1000;
    REQUIRE_LE(endpoint, endpoints - 1);
    CHECK_EQ(received.endpoint_id, scene.far_ends[endpoint].id());
    CHECK_EQ(received.user_value, 100 + endpoint);
    CHECK_EQ(number % 1000, next[endpoint]++) << "one endpoint's messages stay in order";
  }
  CHECK_EQ(used, std::vector<int>(count, 1));
}

// Whatever a provider's completion of a send waits for, a shared queue on the other side keeps it back no
// longer.
CONFORMANCE_TEST(RCQ, 1, a_send_that_met_a_shared_receive_completes, alone) {
  Shared scene(test);
  constexpr std::uint64_t count = 10;
  for (std::uint64_t i = 0; i < count; ++i) {
    REQUIRE_EQ(scene.shared.receive(scene.region.slice(0, 8), i), Status::ok);
    REQUIRE_EQ(scene.near_ends[0].send(Segment::inline_bytes(&i, sizeof(i)), 100 + i, Flags::inline_data),
               Status::ok);
    CHECK_EQ(scene.receives.next().context, i);
    const Completion sent = scene.near.next_of(Operation::send);
    CHECK_EQ(sent.status, Status::ok);
    CHECK_EQ(sent.context, 100 + i);
  }
}

CONFORMANCE_TEST(RCQ, 1, it_survives_the_end_of_an_endpoint_with_its_receives, alone) {
  Shared scene(test);
  const GuardedBuffer& buffer = scene.memory;
  weft::MemoryRegion& region = scene.region;
  for (std::uint64_t i = 0; i < 8; ++i)
    REQUIRE_EQ(scene.shared.receive(region.slice(8 * i, 8), i), Status::ok);
  scene.send_number(0, 5);
  CHECK_EQ(scene.receives.next().context, 0);
  scene.near_ends[0].abort();
  const auto end = scene.receives.until_ended(scene.far_ends[0]);
  REQUIRE_EQ(end.size(), 1U) << "receives not taken stay with the queue: " << list(end);
  CHECK_EQ(end[0].status, Status::aborted);
  CHECK_EQ(end[0].user_value, 100);
  // Too long a message ends its endpoint alone, with the receive it took.
  const GuardedBuffer large(64);
  weft::MemoryRegion large_region = scene.context.register_memory(large.bytes(), weft::Access::none);
  REQUIRE_EQ(scene.near_ends[1].send(large_region.whole(), 6), Status::ok);
  const auto truncated = scene.receives.until_ended(scene.far_ends[1]);
  REQUIRE_EQ(truncated.size(), 2U) << list(truncated);
  CHECK_EQ(truncated[0].status, Status::truncated);
  CHECK_EQ(truncated[0].context, 1);
  CHECK_EQ(truncated[1].status, Status::truncated);
  scene.connect_one_more();
  for (std::uint64_t i = 2; i < 8; ++i) {
    scene.send_number(i % 2 == 0 ? 2 : 3, i);
    const Completion received = scene.receives.next();
    CHECK_EQ(received.context, i);
    CHECK_EQ(buffer.at<std::uint64_t>(8 * i), i);
  }
  CHECK_EQ(scene.shared.receive(region.slice(0, 8), 9), Status::ok);
  scene.send_number(2, 99);
  CHECK_EQ(scene.receives.next().context, 9) << "posted after the ends";
  CHECK_EQ(buffer.at<std::uint64_t>(0), 99);
}

CONFORMANCE_TEST(RCQ, 1, receives_of_a_batch_are_taken_in_its_order, alone) {
  Shared scene(test);
  std::array<Segment, 12> segments;
  std::array<weft::ReceiveRequest, 12> batch;
  for (std::uint64_t i = 0; i < batch.size(); ++i) {
    segments[i] = scene.region.slice(8 * i, 8);
    batch[i] = {.context = i, .segments = std::span(&segments[i], 1)};
  }
  const weft::PostResult posted = scene.shared.post_receives(batch);
  CHECK_EQ(posted.status, Status::ok);
  REQUIRE_EQ(posted.accepted, batch.size());
  for (std::uint64_t i = 0; i < batch.size(); ++i) scene.send_number(1, 70 + i);
  for (std::uint64_t i = 0; i < batch.size(); ++i) {
    CHECK_EQ(scene.receives.next().context, i);
    CHECK_EQ(scene.memory.at<std::uint64_t>(8 * i), 70 + i);
  }
}

CONFORMANCE_TEST(RCQ, 1, its_limits_are_its_own, alone) {
  Shared scene(test, 10);
  weft::MemoryRegion& region = scene.region;
  for (std::uint64_t i = 0; i < 10; ++i) CHECK_EQ(scene.shared.receive(region.slice(0, 8), i), Status::ok);
  CHECK_EQ(scene.shared.receive(region.slice(0, 8), 10), Status::again);
  CHECK_EQ(scene.shared.receive(region.slice(region.length() - 4, 8), 10), Status::invalid_argument);
  CHECK_EQ(region.deregister(), Status::busy);
  scene.send_number(1, 7);
  CHECK_EQ(scene.receives.next().context, 0);
  CHECK_EQ(scene.shared.receive(region.slice(0, 8), 10), Status::ok);
}

CONFORMANCE_TEST(RCQ, 2, an_empty_queue_makes_senders_wait, alone) {
  Shared scene(test);
  const GuardedBuffer& buffer = scene.memory;
  const GuardedBuffer source(100'000);
  source.fill(test.seed());
  weft::MemoryRegion& region = scene.region;
  weft::MemoryRegion source_region = scene.context.register_memory(source.bytes(), weft::Access::none);
  for (std::size_t i = 0; i < endpoints; ++i) {
    REQUIRE_EQ(scene.near_ends[i].send(source_region.whole(), i), Status::ok);
  }
  CHECK_EQ(list(scene.receives.all_within(200ms)), "(none)");
  for (std::size_t i = 0; i < endpoints; ++i) {
    REQUIRE_EQ(scene.shared.receive(region.slice(100'000 * i, 100'000), i), Status::ok);
  }
  for (std::size_t i = 0; i < endpoints; ++i) CHECK_EQ(scene.receives.next().status, Status::ok);
  for (std::size_t i = 0; i < endpoints; ++i) {
    CHECK_EQ(pattern_difference(buffer.bytes(100'000 * i, 100'000), test.seed()), "");
  }
}

CONFORMANCE_TEST(RCQ, 2, the_low_water_mark_is_reported_once_per_crossing, alone) {
  Shared scene(test);
  weft::MemoryRegion& region = scene.region;
  const auto post = [&](int count) {
    for (int i = 0; i < count; ++i) REQUIRE_EQ(scene.shared.receive(region.slice(0, 8), 1), Status::ok);
  };
  const auto use = [&](std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) scene.send_number(i % endpoints, i);
    for (std::uint64_t i = 0; i < count; ++i)
      CHECK_EQ(scene.receives.next_of(Operation::receive).status, Status::ok);
  };
  post(10);
  scene.shared.set_low_water(20);  // what is there has not fallen below it
  CHECK_EQ(list(scene.receives.all_within(50ms)), "(none)");
  scene.shared.set_low_water(5);
  for (int round = 0; round < 3; ++round) {
    use(5);  // down to 5: not below
    CHECK_EQ(list(scene.receives.all_within(50ms)), "(none)");
    use(1);  // below, once
    const Completion low = scene.receives.next_of(Operation::low_water);
    CHECK_EQ(low.user_value, 4242);
    CHECK_EQ(low.endpoint_id, 0);
    CHECK_EQ(low.status, Status::ok);
    use(2);
    CHECK_EQ(list(scene.receives.all_within(50ms)), "(none)");
    post(8);
  }
  // Into arrays of one: nothing is lost for want of place.
  use(6);
  Completion low;
  const Deadline deadline(patience);
  weft::CompletionQueue queue = scene.receives.queue();
  if (scene.receives.kept() > 0) {
    low = scene.receives.next();
  } else {
    while (queue.poll(std::span(&low, 1)).empty() && !deadline.passed()) {
    }
  }
  CHECK_EQ(low.operation, Operation::low_water);
  post(6);
  scene.shared.set_low_water(0);
  use(8);
  CHECK_EQ(list(scene.receives.all_within(50ms)), "(none)");
}

}  // namespace
}  // namespace conformance
