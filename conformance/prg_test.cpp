// PRG-1, PRG-2, PRG-5, PRG-6: what moves, and who moves it.
#include <algorithm>
#include <string>
#include <vector>

#include "harness/process_state.hpp"
#include "harness/side.hpp"

namespace conformance {
namespace {

using weft::Access;
using weft::Completion;
using weft::Flags;
using weft::Operation;
using weft::Segment;
using weft::Status;

CONFORMANCE_TEST(PRG, 1, polling_never_blocks, alone) {
  Loop loop = make_loop(test);
  weft::CompletionQueue queue = loop.near.queue();
  std::vector<Completion> room(16);
  for (int i = 0; i < 1000; ++i) {
    const Stopwatch watch;
    const weft::Polled polled = queue.poll(room);
    CHECK_LE(watch.without_stalls(), 50ms);
    CHECK(polled.empty());
    CHECK_EQ(polled.reason(), weft::Polled::Reason::empty);
  }
}

CONFORMANCE_TEST(PRG, 1, polling_takes_no_more_than_there_is_room_for, alone) {
  Loop loop = make_loop(test);
  const GuardedBuffer buffer(64);
  weft::MemoryRegion region = loop.region(buffer);
  const std::uint64_t count = std::min(50U, loop.far_endpoint.limits().receive_depth);
  for (std::uint64_t i = 0; i < count; ++i) {
    REQUIRE_EQ(loop.far_endpoint.receive(region.slice(0, 8), i), Status::ok);
    REQUIRE_EQ(post_when_possible(loop.near, [&] { return loop.near_endpoint.send(region.slice(8, 8), i); }),
               Status::ok);
  }
  weft::CompletionQueue queue = loop.far.queue();
  std::uint64_t next = 0;
  std::size_t size = 0;
  const Deadline deadline(patience);
  std::vector<Completion> room(16);
  while (next < count && !deadline.passed()) {
    size = (size + 1) % 4;
    for (std::size_t i = size; i < room.size(); ++i) room[i].context = 0xdead;
    const weft::Polled polled = queue.poll(std::span(room).first(size));
    REQUIRE_LE(polled.size(), size);
    for (const Completion& completion : polled) CHECK_EQ(completion.context, next++);
    CHECK_EQ(room[size].context, 0xdead);
  }
  CHECK_EQ(next, count);
}

CONFORMANCE_TEST(PRG, 1, endpoints_progress_whatever_the_program_does, with_peer) {
  // The peer takes messages without ever polling the queue of its second endpoint.
  Peer peer = test.start_peer([](Test& t, Channel& control) {
    Side side = accept_side(t, control);
    Completions other(side.context.create_completion_queue());
    weft::EndpointOptions options;
    options.queue = other.queue();
    control.send(side.listener.address());
    weft::ConnectionRequest request = next_request(side.completions, side.listener);
    weft::Endpoint unpolled = request.prepare(options);
    const GuardedBuffer buffer(1 << 20);
    weft::MemoryRegion region = side.region(buffer, Access::local_write | Access::remote_read);
    for (int i = 0; i < 8; ++i) REQUIRE_EQ(unpolled.receive(region.whole(), 1), Status::ok);
    request.accept();
    give_key(control, region);
    weft::CompletionQueue busy = side.completions.queue();
    std::vector<Completion> room(4);
    const auto end = Clock::now() + 1s;
    while (Clock::now() < end) (void)busy.poll(room);
    control.barrier();
    for (int i = 0; i < 8; ++i) CHECK_EQ(other.next_of(Operation::receive).status, Status::ok);
  });
  Side side = connect_side(test, peer.control());
  weft::Endpoint endpoint = connect_one(side, peer.control());
  const std::string key = peer.control().receive();
  const weft::RemoteMemory remote = endpoint.import_memory(std::as_bytes(std::span(key)));
  const GuardedBuffer buffer(1 << 20);
  weft::MemoryRegion region = side.region(buffer);
  const Stopwatch watch;
  for (std::uint64_t i = 0; i < 8; ++i) {
    REQUIRE_EQ(post_soon([&] { return endpoint.send(region.whole(), i); }), Status::ok);
  }
  // Sends may be complete before anybody looks at them; the answer to a read behind them is not.
  REQUIRE_EQ(post_soon([&] { return endpoint.read(region.slice(0, 1000), remote.at(0), 8); }), Status::ok);
  // They are complete while the peer still polls its other queue.
  for (std::uint64_t i = 0; i < 8; ++i) CHECK_EQ(side.completions.next_of(Operation::send, 2s).context, i);
  CHECK_EQ(side.completions.next_of(Operation::read, 2s).status, Status::ok);
  CHECK_LE(watch.without_stalls(), 900ms);
  peer.control().barrier();
  peer.finish();
}

CONFORMANCE_TEST(PRG, 1, no_endpoint_starves_another, alone) {
  Loop loop = make_loop(test);
  constexpr std::size_t count = 8;
  std::vector<weft::Endpoint> near;
  std::vector<weft::Endpoint> far;
  for (std::size_t i = 0; i < count; ++i) {
    weft::EndpointOptions options;
    options.user_value = i;
    options.queue = loop.near.queue();
    near.push_back(loop.context.connect(loop.listener.address(), options));
    options.queue = loop.far.queue();
    far.push_back(next_request(loop.far, loop.listener).accept(options));
  }
  for (std::size_t i = 0; i < count; ++i) {
    near[i].wait_up(patience);
    far[i].wait_up(patience);
  }
  const GuardedBuffer buffer(1 << 20);
  const GuardedBuffer source(1 << 20);
  weft::MemoryRegion region = loop.region(buffer);
  weft::MemoryRegion source_region = loop.region(source);
  // The first is flooded for as long as the others need.
  std::vector<int> received(count, 0);
  const auto refill = [&](std::size_t i) {
    const Segment into = i == 0 ? region.whole() : region.slice(0, 64);
    while (far[i].receive(into, i) == Status::ok) {
    }
  };
  const auto feed = [&](std::size_t i) {
    const Segment from = i == 0 ? source_region.whole() : source_region.slice(0, 64);
    while (near[i].send(from, i, Flags::unsignalled) == Status::ok && i != 0) {
    }
  };
  for (std::size_t i = count; i-- > 1;) {
    for (int k = 0; k < 8; ++k) REQUIRE_EQ(far[i].receive(region.slice(0, 64), i), Status::ok);
  }
  const Deadline deadline(20s);
  const auto all_fed = [&] {
    for (std::size_t i = 1; i < count; ++i) {
      if (received[i] < 200) return false;
    }
    return true;
  };
  while (!all_fed() && !deadline.passed()) {
    refill(0);
    for (std::size_t i = 0; i < count; ++i) feed(i);
    std::vector<Completion> room(64);
    weft::CompletionQueue queue = loop.far.queue();
    const Stopwatch watch;
    const weft::Polled polled = queue.poll(room);
    CHECK_LE(watch.without_stalls(), 1s) << "a poll blocks, with " << polled.size() << " entries";
    for (const Completion& completion : polled) {
      REQUIRE_EQ(completion.status, Status::ok);
      const std::size_t i = completion.user_value;
      ++received[i];
      if (i != 0) REQUIRE_EQ(far[i].receive(region.slice(0, 64), i), Status::ok);
    }
    loop.near.collect();
  }
  for (std::size_t i = 1; i < count; ++i) CHECK_GE(received[i], 200) << "endpoint " << i;
  for (weft::Endpoint& endpoint : near) endpoint.abort();
}

CONFORMANCE_TEST(PRG, 2, one_sided_operations_need_no_call_of_the_target, with_peer) {
  Peer peer = test.start_peer([](Test& t, Channel& control) {
    Side side = accept_side(t, control);
    const GuardedBuffer memory(1 << 20);
    memory.fill(t.seed());
    weft::MemoryRegion region =
        side.region(memory, Access::remote_read | Access::remote_write | Access::remote_atomic);
    give_key(control, region);
    // Half of the time asleep, half of it busy in its own code.
    control.barrier(60s);
    const auto end = Clock::now() + 1500ms;
    control.barrier();
    while (Clock::now() < end) {
    }
    control.barrier(60s);
  });
  Side side = connect_side(test, peer.control());
  const weft::RemoteMemory remote = side.take_key(peer.control());
  const GuardedBuffer local(1 << 20);
  weft::MemoryRegion region = side.region(local);
  for (int half = 0; half < 2; ++half) {
    for (int i = 0; i < 10; ++i) {
      const Stopwatch watch;
      REQUIRE_EQ(side.endpoint.write(region.whole(), remote.at(0), 1), Status::ok);
      CHECK_EQ(side.completions.next().status, Status::ok);
      REQUIRE_EQ(side.endpoint.read(region.whole(), remote.at(0), 2), Status::ok);
      CHECK_EQ(side.completions.next().status, Status::ok);
      REQUIRE_EQ(side.endpoint.flush(3), Status::ok);
      CHECK_EQ(side.completions.next().status, Status::ok);
      REQUIRE_LE(watch.without_stalls(), 700ms) << "round " << i;
    }
    peer.control().barrier();
    if (half == 0) peer.control().barrier();
  }
  peer.finish();
}

CONFORMANCE_TEST(PRG, 5, an_accepted_operation_goes_out_without_further_calls, with_peer) {
  static constexpr std::size_t sizes[] = {1, 100, 5000, 1 << 20};
  Peer peer = test.start_peer([](Test& t, Channel& control) {
    Side side = accept_side(t, control);
    const GuardedBuffer buffer(1 << 20);
    weft::MemoryRegion region = side.region(buffer);
    for (const std::size_t size : sizes) {
      for (const int count : {1, 5, 5}) {
        for (int i = 0; i < count; ++i) REQUIRE_EQ(side.endpoint.receive(region.whole(), 1), Status::ok);
        control.barrier();
        control.barrier();  // they are posted
        const Stopwatch watch;
        for (int i = 0; i < count; ++i) CHECK_EQ(side.completions.next_of(Operation::receive).bytes, size);
        CHECK_LE(watch.without_stalls(), 400ms) << count << " of " << size << " bytes";
        control.barrier();
      }
    }
  });
  Side side = connect_side(test, peer.control());
  const GuardedBuffer buffer(1 << 20);
  weft::MemoryRegion region = side.region(buffer);
  for (const std::size_t size : sizes) {
    bool at_once = false;
    for (const int count : {1, 5, 5}) {
      peer.control().barrier();
      // One by one, then as many in one batch.
      const Segment piece = region.slice(0, size);
      const std::vector<weft::WorkRequest> batch(at_once ? 5 : 1, {.context = 1, .segments = {&piece, 1}});
      for (int i = 0; i < count; i += at_once ? 5 : 1) {
        std::span<const weft::WorkRequest> left = batch;
        REQUIRE_EQ(post_soon([&] {
                     const weft::PostResult result = side.endpoint.post(left);
                     left = left.subspan(result.accepted);
                     return result.status;
                   }),
                   Status::ok);
      }
      at_once = count == 5;
      peer.control().barrier();
      peer.control().barrier();  // here this side makes no call at all
      for (const Completion& sent : side.completions.take(static_cast<std::size_t>(count))) {
        CHECK_EQ(sent.status, Status::ok);
      }
    }
  }
  peer.finish();
}

// "At once": the best of many tries tells, however busy the machine is. What is held back for a timer is
// never that quick.
CONFORMANCE_TEST(PRG, 5, an_idle_endpoint_starts_at_once, alone) {
  Loop loop = make_loop(test);
  const GuardedBuffer buffer(128);
  weft::MemoryRegion region = loop.region(buffer);
  Duration best = 1h;
  for (std::uint64_t i = 0; i < 12; ++i) {
    REQUIRE_EQ(loop.far_endpoint.receive(region.slice(0, 64), i), Status::ok);
    pause(80ms);
    const Stopwatch watch;
    REQUIRE_EQ(loop.near_endpoint.send(region.slice(64, 64), i), Status::ok);
    CHECK_EQ(loop.far.next().context, i);
    best = std::min(best, watch.elapsed());
    CHECK_EQ(loop.near.next().context, i);
  }
  CHECK_LE(best, 40ms) << "each message waited, though nothing was under way";
}

CONFORMANCE_TEST(PRG, 6, without_a_helper_everything_moves_inside_calls, alone) {
  // A fabric may have threads of its own; so what counts is one less than with a helper.
  const auto helped = [&] {
    const weft::Context context = test.open_context();
    return holdings_of_this_process().threads;
  }();
  weft::ContextOptions options = test.context_options();
  options.progress_mode = weft::ProgressMode::when_called;
  weft::Context context = weft::Context::open(options);
  CHECK(context.attributes().progress_mode == weft::ProgressMode::when_called);
  CHECK_LE(holdings_of_this_process().threads + 1, helped) << "there is a helper thread";
  Completions completions(context.create_completion_queue());
  weft::ListenOptions listen;
  listen.queue = completions.queue();
  weft::Listener listener = context.listen(host_of(context) + ":0", listen);
  weft::EndpointOptions endpoint_options;
  endpoint_options.queue = completions.queue();
  weft::Endpoint near = context.connect(listener.address(), endpoint_options);
  weft::Endpoint far = next_request(completions, listener).accept(endpoint_options);
  near.wait_up(patience);
  far.wait_up(patience);
  check_ping(context, near, completions, far, completions);
  CHECK_LE(holdings_of_this_process().threads + 1, helped) << "there is a helper thread";
  near.close(1s);
  CHECK_EQ(completions.until_ended(far).back().status, Status::disconnected);
  CHECK_EQ(completions.until_ended(near).back().status, Status::local_close);
}

// Whatever call it is: one queue is polled or waited at, and the endpoint of another one answers.
CONFORMANCE_TEST(PRG, 6, a_call_moves_what_it_does_not_name, alone) {
  weft::ContextOptions options = test.context_options();
  options.progress_mode = weft::ProgressMode::when_called;
  weft::Context context = weft::Context::open(options);
  Completions near(context.create_completion_queue());
  Completions far(context.create_completion_queue());
  weft::ListenOptions listen;
  listen.queue = far.queue();
  weft::Listener listener = context.listen(host_of(context) + ":0", listen);
  weft::EndpointOptions endpoint_options;
  endpoint_options.queue = near.queue();
  weft::Endpoint near_endpoint = context.connect(listener.address(), endpoint_options);
  endpoint_options.queue = far.queue();
  weft::Endpoint far_endpoint = next_request(far, listener).accept(endpoint_options);
  near_endpoint.wait_up(patience);
  far_endpoint.wait_up(patience);
  const GuardedBuffer target(1 << 20);
  const GuardedBuffer local(1 << 20);
  target.fill(test.seed());
  weft::MemoryRegion target_region =
      context.register_memory(target.bytes(), Access::remote_read | Access::remote_write);
  weft::MemoryRegion region = context.register_memory(local.bytes(), Access::local_write);
  const weft::RemoteMemory remote = near_endpoint.import_memory(target_region.key());
  weft::CompletionQueue queue = near.queue();
  std::vector<Completion> room(4);
  for (const bool waits : {false, true}) {
    local.poison();
    REQUIRE_EQ(near_endpoint.read(region.whole(), remote.at(0), 1), Status::ok);
    std::size_t taken = 0;
    const Deadline deadline(5s);
    while (taken == 0 && !deadline.passed()) {
      const weft::Polled polled = waits ? queue.wait(room, 50ms) : queue.poll(room);
      taken = polled.size();
    }
    REQUIRE_EQ(taken, 1U) << (waits ? "waiting" : "polling");
    CHECK_EQ(room[0].status, Status::ok);
    CHECK_EQ(local.difference(test.seed()), "");
  }
}

CONFORMANCE_TEST(PRG, 6, the_attributes_tell_the_modes, alone) {
  const weft::Context context = test.open_context();
  CHECK(context.attributes().progress_mode == weft::ProgressMode::automatic);
  CHECK(context.attributes().thread_mode == test.setting().threads);
}

}  // namespace
}  // namespace conformance
