// ERR-4, ERR-5: closing, aborting, destroying.
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

constexpr std::size_t message_size = 3000;
constexpr std::size_t message_count = 200;

// Takes messages until the end; says how many came. Receives are posted as they are used up.
void takes_until_the_end(Test& test, Channel& control) {
  Side side = accept_side(test, control);
  constexpr std::size_t depth = 16;
  const GuardedBuffer buffer(depth * message_size);
  weft::MemoryRegion region = side.region(buffer);
  const auto post = [&](std::size_t i) {
    return side.endpoint.receive(region.slice((i % depth) * message_size, message_size), i);
  };
  control.barrier();  // before that nothing is posted: the close begins while the messages wait
  for (std::size_t i = 0; i < depth; ++i) {
    const Status status = post(i);
    CHECK(status == Status::ok || status == Status::not_connected) << weft::to_string(status);
  }
  std::uint64_t received = 0;
  Completion completion = side.completions.next();
  std::string wrong;
  while (completion.operation == Operation::receive && completion.status == Status::ok && wrong.empty()) {
    if (completion.context != received || completion.bytes != message_size) wrong = list({completion});
    wrong += pattern_difference(buffer.bytes((received % depth) * message_size, message_size),
                                test.seed() + received);
    ++received;
    const Status status = post(received + depth - 1);
    if (status != Status::ok && status != Status::not_connected) wrong += weft::to_string(status);
    completion = side.completions.next();
  }
  REQUIRE_EQ(wrong, "") << "message " << received;
  std::vector<Completion> left;
  while (completion.operation == Operation::receive) {
    left.push_back(completion);
    completion = side.completions.next();
  }
  CHECK(std::all_of(left.begin(), left.end(), [](const Completion& c) {
    return c.status == Status::cancelled;
  })) << list(left);
  CHECK_EQ(completion.operation, Operation::endpoint_ended);
  control.send_value(received);
  control.send_value(completion.status);
  control.barrier();
}

// Sends as many of the messages as are taken at once.
std::uint64_t send_what_is_taken(const Test& test, Side& side, const GuardedBuffer& buffer,
                                 const weft::MemoryRegion& region) {
  std::uint64_t taken = 0;
  for (std::size_t i = 0; i < message_count; ++i) {
    fill_pattern(buffer.bytes(i * message_size, message_size), test.seed() + i);
  }
  const auto post = [&] {
    return side.endpoint.send(region.slice(taken * message_size, message_size), taken);
  };
  while (taken < message_count && post_soon(post, 50ms) == Status::ok) ++taken;
  return taken;
}

CONFORMANCE_TEST(ERR, 4, a_graceful_close_delivers_every_accepted_send, with_peer) {
  Peer peer = test.start_peer(takes_until_the_end);
  Side side = connect_side(test, peer.control());
  const GuardedBuffer buffer(message_count * message_size);
  weft::MemoryRegion region = side.region(buffer);
  const std::uint64_t taken = send_what_is_taken(test, side, buffer, region);
  CHECK_GE(taken, std::min(16U, side.endpoint.limits().send_depth));
  const Stopwatch watch;
  side.endpoint.close(10s);
  CHECK_LE(watch.without_stalls(), 100ms) << "close() returns at once";
  CHECK_EQ(side.endpoint.send(region.slice(0, 8), 1), Status::not_connected);
  peer.control().barrier();
  const auto all = side.completions.until_ended(side.endpoint);
  REQUIRE_EQ(all.size(), taken + 1) << list(all);
  for (std::size_t i = 0; i < taken; ++i) {
    CHECK_EQ(all[i].context, i);
    CHECK_EQ(all[i].status, Status::ok);
  }
  CHECK_EQ(all.back().status, Status::local_close);
  CHECK_EQ(peer.control().receive_value<std::uint64_t>(), taken);
  CHECK_EQ(peer.control().receive_value<Status>(), Status::disconnected);
  peer.control().barrier();
  peer.finish();
}

CONFORMANCE_TEST(ERR, 4, an_abort_leaves_the_peer_a_clean_prefix, with_peer) {
  Peer peer = test.start_peer(takes_until_the_end);
  Side side = connect_side(test, peer.control());
  const GuardedBuffer buffer(message_count * message_size);
  weft::MemoryRegion region = side.region(buffer);
  const std::uint64_t taken = send_what_is_taken(test, side, buffer, region);
  peer.control().barrier();
  pause(1ms);
  side.endpoint.abort();
  const auto all = side.completions.until_ended(side.endpoint, 2s);
  CHECK_EQ(all.size(), taken + 1) << "every completion can still be taken";
  CHECK_EQ(all.back().status, Status::local_close);
  CHECK_LE(peer.control().receive_value<std::uint64_t>(), taken);
  CHECK_EQ(peer.control().receive_value<Status>(), Status::aborted);
  peer.control().barrier();
  peer.finish();
}

CONFORMANCE_TEST(ERR, 4, a_close_ends_by_its_deadline_when_the_peer_is_stuck, with_process) {
  Peer peer = test.start_process_peer([](Test& t, Channel& control) {
    Side side = accept_side(t, control);
    control.barrier();
    control.barrier(60s);
    CHECK_EQ(side.completions.until_ended(side.endpoint).back().status, Status::aborted);
  });
  Side side = connect_side(test, peer.control());
  const GuardedBuffer buffer(1 << 20);
  weft::MemoryRegion region = side.region(buffer);
  peer.control().barrier();
  peer.stop();
  std::uint64_t taken = 0;
  while (taken < 64 && side.endpoint.send(region.whole(), taken) == Status::ok) ++taken;
  CHECK_GE(taken, 1);
  const Stopwatch watch;
  side.endpoint.close(700ms);
  const auto all = side.completions.until_ended(side.endpoint, 5s);
  CHECK_GE(watch.elapsed(), 600ms);
  CHECK_LE(watch.without_stalls(), 1700ms);
  CHECK_EQ(all.size(), taken + 1);
  CHECK_EQ(all.back().status, Status::local_close);
  peer.resume();
  peer.control().barrier();
  peer.finish();
}

CONFORMANCE_TEST(ERR, 4, both_ends_may_close_at_once, alone) {
  for (int round = 0; round < 20; ++round) {
    Loop loop = make_loop(test);
    check_ping(loop);
    loop.near_endpoint.close(5s);
    if (round % 2 == 0) pause(1ms);
    loop.far_endpoint.close(5s);
    const auto near = loop.near.until_ended(loop.near_endpoint, 5s);
    const auto far = loop.far.until_ended(loop.far_endpoint, 5s);
    CHECK_EQ(near.size(), 1U);
    CHECK_EQ(far.size(), 1U);
    CHECK(near[0].status == Status::local_close) << list(near);
    CHECK(far[0].status == Status::local_close || far[0].status == Status::disconnected) << list(far);
  }
}

// Everything a program can hold, in the order of the letters; each may be dropped at any time.
struct Held {
  weft::Context context;
  weft::CompletionQueue near_queue;
  weft::CompletionQueue far_queue;
  weft::Listener listener;
  weft::MemoryRegion region;
  weft::Endpoint near;
  weft::Endpoint far;

  void drop(int which) {
    switch (which) {
      case 0:
        context = {};
        return;
      case 1:
        near_queue = {};
        return;
      case 2:
        far_queue = {};
        return;
      case 3:
        listener = {};
        return;
      case 4:
        region = {};
        return;
      case 5:
        near = {};
        return;
      default:
        far = {};
        return;
    }
  }
};

void drop_in_order(const Test& test, const std::array<int, 7>& order) {
  const GuardedBuffer buffer(1 << 20);
  {
    Held held;
    {
      Loop loop = make_loop(test);
      held.context = loop.context;
      held.near_queue = loop.near.queue();
      held.far_queue = loop.far.queue();
      held.listener = loop.listener;
      held.region = loop.region(buffer);
      held.near = loop.near_endpoint;
      held.far = loop.far_endpoint;
    }
    // Receives posted, sends in flight and waiting, on both ends.
    REQUIRE_EQ(held.far.receive(held.region.slice(0, 100), 1), Status::ok);
    REQUIRE_EQ(held.near.send(held.region.slice(100, 100), 2), Status::ok);
    REQUIRE_EQ(post_soon([&] { return held.near.send(held.region.whole(), 3); }), Status::ok);
    REQUIRE_EQ(held.far.send(held.region.whole(), 4, Flags::unsignalled), Status::ok);
    std::string text;
    for (const int which : order) {
      const Stopwatch watch;
      held.drop(which);
      text += ' ' + std::to_string(which);
      CHECK_LE(watch.without_stalls(), 2s) << "dropping in the order" << text;
    }
  }
  buffer.poison();
  pause(5ms);
  CHECK_EQ(buffer.touched(), "") << "memory was touched after its region was gone";
}

CONFORMANCE_TEST(ERR, 5, handles_may_be_dropped_parents_first_or_last, alone) {
  std::array<int, 7> order = {0, 1, 2, 3, 4, 5, 6};
  drop_in_order(test, order);
  std::reverse(order.begin(), order.end());
  drop_in_order(test, order);
}

CONFORMANCE_TEST(ERR, 5, handles_may_be_dropped_in_any_order, alone.full().within(90s)) {
  std::array<int, 7> order = {0, 1, 2, 3, 4, 5, 6};
  for (std::size_t turn = 1; turn < order.size(); ++turn) {
    std::rotate(order.begin(), order.begin() + 1, order.end());
    drop_in_order(test, order);
  }
}

CONFORMANCE_TEST(ERR, 5, a_context_with_many_endpoints_closes_in_time, alone) {
  Loop loop = make_loop(test);
  // Sends that no receive awaits are tried again and again, which many long ones make an emulated processor's
  // only occupation.
  const bool emulated = test.setting().fabric_class == FabricClass::emulated;
  const GuardedBuffer buffer(emulated ? 4096 : 1 << 16);
  weft::MemoryRegion region = loop.region(buffer);
  std::vector<weft::Endpoint> endpoints;
  for (int i = 0; i < 30; ++i) {
    weft::EndpointOptions options;
    options.queue = loop.near.queue();
    endpoints.push_back(loop.context.connect(loop.listener.address(), options));
    options.queue = loop.far.queue();
    endpoints.push_back(next_request(loop.far, loop.listener).accept(options));
  }
  for (weft::Endpoint& endpoint : endpoints) endpoint.wait_up(patience);
  for (weft::Endpoint& endpoint : endpoints) CHECK_EQ(endpoint.send(region.whole(), 1), Status::ok);
  const Stopwatch watch;
  loop.context.close();
  CHECK_LE(watch.without_stalls(), 2s);
  CHECK_EQ(endpoints[0].send(region.slice(0, 1), 1), Status::not_connected);
  CHECK_EQ(endpoints[0].state(), weft::EndpointState::ended);
  loop.context.close();
  const auto error = error_of([&] { (void)loop.context.create_completion_queue(); });
  CHECK(error.has_value()) << "a closed context makes nothing new";
}

// Objects that outlive main's body.
Loop& in_static_storage() {
  static Loop loop;
  return loop;
}

CONFORMANCE_TEST(ERR, 5, static_destructors_are_in_time, with_process) {
  // The peer's exit status tells: it returns from its function with everything in static storage.
  Peer peer = test.start_process_peer([](Test& t, Channel& control) {
    in_static_storage() = make_loop(t);
    static GuardedBuffer buffer(64);
    static weft::MemoryRegion region = in_static_storage().region(buffer);
    REQUIRE_EQ(in_static_storage().far_endpoint.receive(region.whole(), 1), Status::ok);
    control.barrier();
    // What is left over is meant to be; the counting at the end must not see it.
    control.put(Channel::Kind::finished, Findings::here().take());
    std::exit(0);
  });
  peer.control().barrier();
  const Stopwatch watch;
  peer.finish();
  CHECK_LE(watch.without_stalls(), 5s);
}

// Receives in a shared queue belong to no endpoint yet; with their memory they go.
CONFORMANCE_TEST(ERR, 5, a_region_dropped_under_a_shared_receive_queue, alone) {
  weft::Context context = test.open_context();
  Completions near(context.create_completion_queue());
  Completions far(context.create_completion_queue());
  weft::ReceiveQueueOptions queue_options;
  queue_options.queue = far.queue();
  queue_options.depth = std::min(queue_options.depth, context.attributes().limits.receive_depth);
  weft::ReceiveQueue shared = context.create_receive_queue(queue_options);
  weft::ListenOptions listen;
  listen.queue = far.queue();
  weft::Listener listener = context.listen(host_of(context) + ":0", listen);
  weft::EndpointOptions options;
  options.queue = near.queue();
  weft::Endpoint near_endpoint = context.connect(listener.address(), options);
  options = {};
  options.send_completions = far.queue();
  options.shared_receives = shared;
  weft::Endpoint far_endpoint = next_request(far, listener).accept(options);
  near_endpoint.wait_up(patience);
  far_endpoint.wait_up(patience);
  const GuardedBuffer buffer(4096);
  weft::MemoryRegion region = context.register_memory(buffer.bytes(), weft::Access::local_write);
  for (int i = 0; i < 4; ++i) REQUIRE_EQ(shared.receive(region.slice(0, 1000), 1), Status::ok);
  const Stopwatch watch;
  region = {};
  CHECK_LE(watch.without_stalls(), 1500ms) << "nothing is on its way that could be waited for";
  buffer.poison();
  const Status status = near_endpoint.send(Segment::inline_bytes("12345678", 8), 2, Flags::inline_data);
  CHECK(status == Status::ok || status == Status::not_connected) << weft::to_string(status);
  pause(100ms);
  far.collect();
  CHECK_EQ(buffer.touched(), "") << "a message was written to memory that is not registered any more";
}

}  // namespace
}  // namespace conformance
