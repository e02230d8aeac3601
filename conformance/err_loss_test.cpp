// ERR-3: dead peers are noticed, slow ones are not taken for dead.
#include <string>
#include <vector>

#include "harness/side.hpp"

namespace conformance {
namespace {

using weft::Access;
using weft::Completion;
using weft::Operation;
using weft::Segment;
using weft::Status;

constexpr std::chrono::milliseconds peer_timeout = 2s;

SideOptions short_timeout() {
  SideOptions options;
  options.peer_timeout = peer_timeout;
  return options;
}

// Is there, offers memory, posts nothing.
void is_there(Test& test, Channel& control) {
  Side side = accept_side(test, control, short_timeout());
  const GuardedBuffer memory(1 << 20);
  weft::MemoryRegion region = side.region(memory, Access::remote_read | Access::remote_write);
  give_key(control, region);
  control.barrier();
  control.barrier(60s);
}

CONFORMANCE_TEST(ERR, 3, a_killed_peer_is_noticed_on_an_idle_connection, with_process) {
  Peer peer = test.start_process_peer(is_there);
  Side side = connect_side(test, peer.control(), short_timeout());
  (void)side.take_key(peer.control());
  peer.control().barrier();
  const GuardedBuffer buffer(64);
  weft::MemoryRegion region = side.region(buffer);
  REQUIRE_EQ(side.endpoint.receive(region.whole(), 1), Status::ok);
  peer.kill();
  const Stopwatch watch;
  const auto all = side.completions.until_ended(side.endpoint, peer_timeout + 2s);
  CHECK_LE(watch.without_stalls(), peer_timeout + 1s);
  REQUIRE_EQ(all.size(), 2U) << list(all);
  CHECK_EQ(all[0].status, Status::cancelled);
  CHECK_EQ(all[1].status, Status::peer_lost);
  CHECK_EQ(side.endpoint.cause(), Status::peer_lost);
  CHECK_EQ(side.endpoint.receive(region.whole(), 2), Status::not_connected);
  peer.finish();
}

CONFORMANCE_TEST(ERR, 3, a_killed_peer_is_noticed_with_everything_outstanding, with_process) {
  Peer doomed = test.start_process_peer(is_there);
  Peer healthy = test.start_process_peer([](Test& t, Channel& control) {
    Side side = accept_side(t, control, short_timeout());
    const GuardedBuffer buffer(8);
    weft::MemoryRegion region = side.region(buffer);
    const auto count = control.receive_value<int>(30s);
    for (int i = 0; i < count; ++i) {
      REQUIRE_EQ(side.endpoint.receive(region.whole(), 1), Status::ok);
      CHECK_EQ(side.completions.next_of(Operation::receive, 20s).status, Status::ok);
    }
    control.barrier(30s);
  });
  Side side = connect_side(test, doomed.control(), short_timeout());
  const weft::RemoteMemory remote = side.take_key(doomed.control());
  weft::Endpoint other = connect_one(side, healthy.control());
  doomed.control().barrier();
  const GuardedBuffer buffer(1 << 20);
  weft::MemoryRegion region = side.region(buffer);
  std::vector<std::uint64_t> expected;
  std::uint64_t context = 0;
  for (; context < 4; ++context) REQUIRE_EQ(side.endpoint.receive(region.whole(), context), Status::ok);
  doomed.stop();
  for (; context < 8; ++context) {
    if (side.endpoint.send(region.whole(), context) == Status::ok) expected.push_back(context);
  }
  if (side.endpoint.read(region.whole(), remote.at(0), context) == Status::ok) expected.push_back(context);
  ++context;
  if (side.endpoint.write(region.whole(), remote.at(0), context) == Status::ok) expected.push_back(context);
  doomed.kill();
  doomed.finish();
  constexpr int pings = 20;
  healthy.control().send_value(pings);
  for (int i = 0; i < pings; ++i) {
    const Stopwatch watch;
    REQUIRE_EQ(other.send(region.slice(0, 8), 900), Status::ok);
    CHECK_EQ(side.completions.next_of(Operation::send, other, 5s).status, Status::ok);
    CHECK_LE(watch.without_stalls(), 1s) << "another endpoint was held up";
  }
  const auto all = side.completions.until_ended(side.endpoint, peer_timeout + 2s);
  std::vector<std::uint64_t> sends;
  std::size_t receives = 0;
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    if (all[i].operation == Operation::receive) {
      CHECK_EQ(all[i].context, receives++);
      CHECK_EQ(all[i].status, Status::cancelled);
    } else {
      sends.push_back(all[i].context);
    }
  }
  CHECK_EQ(receives, 4);
  CHECK_EQ(sends, expected) << list(all);
  CHECK_EQ(all.back().status, Status::peer_lost);
  healthy.control().barrier();
  healthy.finish();
}

CONFORMANCE_TEST(ERR, 3, a_peer_killed_while_connecting_is_noticed, with_process) {
  Peer peer = test.start_process_peer([](Test& t, Channel& control) {
    weft::Context context = t.open_context(peer_timeout);
    Completions completions(context.create_completion_queue());
    weft::ListenOptions listen;
    listen.queue = completions.queue();
    weft::Listener listener = context.listen(host_of(context) + ":0", listen);
    control.send(listener.address());
    const weft::ConnectionRequest request = next_request(completions, listener);
    control.barrier();
    control.barrier(60s);
  });
  weft::Context context = test.open_context(peer_timeout);
  Completions completions(context.create_completion_queue());
  weft::EndpointOptions options;
  options.queue = completions.queue();
  weft::Endpoint endpoint = context.connect(peer.control().receive(), options);
  peer.control().barrier();
  peer.kill();
  const Completion outcome = completions.next(peer_timeout + 2s);
  CHECK_EQ(outcome.operation, Operation::connect);
  CHECK_NE(outcome.status, Status::ok);
  CHECK_EQ(list(completions.all_within(50ms)), "(none)");
  peer.finish();
}

// Stops the peer three times as long as would be its death.
void stop_for_long(Test& test, bool with_data) {
  Peer peer = test.start_process_peer([](Test& t, Channel& control) {
    Side side = accept_side(t, control, short_timeout());
    control.barrier();
    const GuardedBuffer buffer(1 << 20);
    weft::MemoryRegion region = side.region(buffer);
    const auto taken = control.receive_value<std::uint64_t>(60s);
    for (std::uint64_t i = 0; i < taken; ++i) {
      REQUIRE_EQ(side.endpoint.receive(region.whole(), i), Status::ok);
      const Completion received = side.completions.next_of(Operation::receive);
      REQUIRE_EQ(received.status, Status::ok);
      CHECK_EQ(buffer.difference(t.seed()), "") << "message " << i;
    }
    control.barrier();
  });
  Side side = connect_side(test, peer.control(), short_timeout());
  const GuardedBuffer buffer(1 << 20);
  buffer.fill(test.seed());
  weft::MemoryRegion region = side.region(buffer);
  peer.control().barrier();
  peer.stop();
  std::uint64_t taken = 0;
  if (with_data) {
    // More than the sockets between the two can take.
    while (taken < 64 && side.endpoint.send(region.whole(), taken) == Status::ok) ++taken;
    CHECK_GE(taken, 1);
  }
  std::uint64_t done = 0;
  for (const Completion& completion : side.completions.all_within(3 * peer_timeout)) {
    // A send may be complete before it is received, but a stopped peer is not a dead peer.
    CHECK_EQ(completion.operation, Operation::send);
    CHECK_EQ(completion.status, Status::ok);
    CHECK_EQ(completion.context, done++);
  }
  CHECK_EQ(side.endpoint.state(), weft::EndpointState::up);
  peer.resume();
  if (!with_data) {
    REQUIRE_EQ(side.endpoint.send(region.whole(), taken), Status::ok);
    ++taken;
  }
  peer.control().send_value(taken);
  for (; done < taken; ++done) CHECK_EQ(side.completions.next().status, Status::ok);
  peer.control().barrier();
  peer.finish();
}

CONFORMANCE_TEST(ERR, 3, a_stopped_peer_is_not_dead_on_an_idle_connection, with_process) {
  stop_for_long(test, false);
}

CONFORMANCE_TEST(ERR, 3, a_stopped_peer_is_not_dead_with_data_queued_to_it, with_process) {
  stop_for_long(test, true);
}

}  // namespace
}  // namespace conformance
