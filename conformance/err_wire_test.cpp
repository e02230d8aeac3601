// ERR-3, ERR-4: a wire that is cut, with or without a word, and one that comes back in time. A provider's
// data may go another way; its control connection goes this one, and what is said to be done must be done.
#include <string>
#include <vector>

#include "harness/network.hpp"
#include "harness/raw_socket.hpp"
#include "harness/side.hpp"

namespace conformance {
namespace {

using weft::Access;
using weft::Completion;
using weft::Operation;
using weft::Status;

constexpr std::chrono::milliseconds peer_timeout = 2s;

SideOptions on_the_wire(std::chrono::milliseconds timeout = peer_timeout) {
  SideOptions options;
  options.peer_timeout = timeout;
  options.host = Wire::peer.v4;
  return options;
}

// Whether anything passes the wire, seen by a plain socket: what a test says about a cut is worth nothing
// when there was none.
class Probe {
 public:
  explicit Probe(Channel& control) : socket_(RawSocket::connected_to(control.receive())) {}
  [[nodiscard]] bool passes(Duration patience) const {
    return socket_.send("x") && eventually(patience, [&] { return socket_.is_acknowledged(); });
  }
  // The other end, to be kept; it takes what comes without looking at it.
  static RawSocket other_end(Channel& control) {
    RawSocket listener = RawSocket::listening(0, Wire::peer.v4);
    control.send(std::string(Wire::peer.v4) + ':' + std::to_string(listener.port()));
    return listener;
  }

 private:
  RawSocket socket_;
};

constexpr std::size_t piece = 1 << 18;
constexpr std::size_t pieces = 4;

// Sees its endpoint end because the test is gone, and within which time.
void sees_it_lost(Test& test, Channel& control) {
  const RawSocket other_end = Probe::other_end(control);
  Side side = accept_side(test, control, on_the_wire());
  const GuardedBuffer buffer(pieces * piece);
  const GuardedBuffer message(1000);
  weft::MemoryRegion region = side.region(buffer, Access::remote_write);
  weft::MemoryRegion message_region = side.region(message);
  REQUIRE_EQ(side.endpoint.receive(message_region.whole(), 1), Status::ok);
  give_key(control, region);
  control.barrier();
  const Stopwatch watch;
  const auto all = side.completions.until_ended(side.endpoint, peer_timeout + 5s);
  CHECK_LE(watch.without_stalls(), peer_timeout + 2s);
  control.send_value(all.back().status);
  control.send_value(all.front().operation == Operation::receive && all.front().status == Status::ok);
  const auto done = control.receive_value<std::uint64_t>();
  for (std::size_t i = 0; i < done; ++i) {
    CHECK_EQ(pattern_difference(buffer.bytes(i * piece, piece), test.seed() + i), "")
        << "write " << i << " was said to be done";
  }
  control.barrier();
}

enum class Cut : std::uint8_t { plug_here, plug_there, silent, silent_one_way };

void cut_the(const Wire& wire, Cut cut, bool cutting) {
  if (cut == Cut::plug_here) wire.set_up(true, !cutting);
  if (cut == Cut::plug_there) wire.set_up(false, !cutting);
  if (cut == Cut::silent || cut == Cut::silent_one_way) wire.lose_to_peer(cutting);
  if (cut == Cut::silent) wire.lose_to_test(cutting);
}

// What this side says is lost, what the peer says may arrive: in the end both know.
void cut_and_look(Test& test, Cut cut, bool with_data) {
  Peer peer = test.start_process_peer(sees_it_lost);
  const Wire wire(peer);
  const Probe probe(peer.control());
  Side side = connect_side(test, peer.control(), on_the_wire());
  const GuardedBuffer buffer(pieces * piece);
  weft::MemoryRegion region = side.region(buffer);
  const weft::RemoteMemory remote = side.take_key(peer.control());
  REQUIRE_EQ(side.endpoint.receive(region.slice(0, 64), 100), Status::ok);
  CHECK(probe.passes(5s));
  cut_the(wire, cut, true);
  std::vector<std::uint64_t> posted;
  for (std::uint64_t i = 0; with_data && i < pieces; ++i) {
    fill_pattern(buffer.bytes(i * piece, piece), test.seed() + i);
    const Status status = side.endpoint.write(region.slice(i * piece, piece), remote.at(i * piece), i);
    if (status == Status::ok) posted.push_back(i);
  }
  CHECK(!with_data || !posted.empty());
  peer.control().barrier();
  const Stopwatch watch;
  CHECK(!probe.passes(200ms)) << "there was no cut";
  const auto all = side.completions.until_ended(side.endpoint, peer_timeout + 5s);
  CHECK_LE(watch.without_stalls(), peer_timeout + 2s);
  std::vector<std::uint64_t> seen;
  std::uint64_t done = 0;
  for (const Completion& completion : all) {
    if (completion.operation != Operation::write) continue;
    seen.push_back(completion.context);
    if (completion.status == Status::ok) ++done;
  }
  CHECK_EQ(seen, posted) << list(all);
  CHECK_EQ(all.back().status, Status::peer_lost) << list(all);
  CHECK_EQ(side.endpoint.cause(), Status::peer_lost);
  CHECK_EQ(peer.control().receive_value<Status>(), Status::peer_lost) << "how the peer's endpoint ended";
  (void)peer.control().receive_value<bool>();
  peer.control().send_value(done);
  peer.control().barrier();
  peer.finish();
}

CONFORMANCE_TEST(ERR, 3, a_silent_cut_is_noticed_over_a_wire, over_a_wire) {
  cut_and_look(test, Cut::silent, false);
}
CONFORMANCE_TEST(ERR, 3, a_silent_cut_with_data_under_way_is_noticed_over_a_wire, over_a_wire.full()) {
  cut_and_look(test, Cut::silent, true);
}
CONFORMANCE_TEST(ERR, 3, a_cut_in_one_direction_is_noticed_over_a_wire, over_a_wire.full()) {
  cut_and_look(test, Cut::silent_one_way, false);
}
CONFORMANCE_TEST(ERR, 3, a_pulled_plug_is_noticed_over_a_wire, over_a_wire.full()) {
  cut_and_look(test, Cut::plug_here, true);
}
CONFORMANCE_TEST(ERR, 3, the_peers_pulled_plug_is_noticed_over_a_wire, over_a_wire.full()) {
  cut_and_look(test, Cut::plug_there, false);
}

constexpr std::uint64_t echoed = 40;
constexpr std::size_t echo_size = 20'000;

// Takes that many messages and sends each back.
void echoes_all(Test& test, Channel& control) {
  const RawSocket other_end = Probe::other_end(control);
  Side side = accept_side(test, control, on_the_wire(30s));
  const GuardedBuffer buffer(echo_size);
  weft::MemoryRegion region = side.region(buffer);
  for (std::uint64_t i = 0; i < echoed; ++i) {
    REQUIRE_EQ(side.endpoint.receive(region.whole(), i), Status::ok);
    if (i == 0) control.barrier();
    const Completion received = side.completions.next_of(Operation::receive, 15s);
    REQUIRE_EQ(received.status, Status::ok);
    CHECK_EQ(buffer.difference(test.seed() + i), "") << "message " << i;
    REQUIRE_EQ(side.endpoint.send(region.whole(), i), Status::ok);
    REQUIRE_EQ(side.completions.next_of(Operation::send, 15s).status, Status::ok);
  }
  control.barrier(30s);
}

CONFORMANCE_TEST(ERR, 3, a_wire_that_comes_back_in_time_harms_nothing_over_a_wire, over_a_wire) {
  Peer peer = test.start_process_peer(echoes_all);
  const Wire wire(peer);
  const Probe probe(peer.control());
  Side side = connect_side(test, peer.control(), on_the_wire(30s));
  const GuardedBuffer out(echo_size);
  const GuardedBuffer in(echo_size);
  weft::MemoryRegion out_region = side.region(out);
  weft::MemoryRegion in_region = side.region(in);
  peer.control().barrier();
  const std::vector<Cut> cuts = {Cut::plug_here, Cut::plug_there, Cut::silent_one_way};
  for (std::uint64_t i = 0; i < echoed; ++i) {
    const bool is_cut = i % 10 == 0 && i / 10 < cuts.size();
    if (is_cut) cut_the(wire, cuts[i / 10], true);
    out.fill(test.seed() + i);
    in.poison();
    REQUIRE_EQ(side.endpoint.receive(in_region.whole(), i), Status::ok);
    REQUIRE_EQ(side.endpoint.send(out_region.whole(), i), Status::ok);
    if (is_cut) {
      CHECK(!probe.passes(500ms)) << "there was no cut";
      cut_the(wire, cuts[i / 10], false);
    }
    const Completion received = side.completions.next_of(Operation::receive, 15s);
    REQUIRE_EQ(received.status, Status::ok) << side.endpoint.describe_end();
    CHECK_EQ(in.difference(test.seed() + i), "") << "message " << i;
    REQUIRE_EQ(side.completions.next_of(Operation::send, 15s).status, Status::ok);
  }
  CHECK(probe.passes(10s));
  CHECK_EQ(side.endpoint.state(), weft::EndpointState::up);
  peer.control().barrier();
  peer.finish();
}

CONFORMANCE_TEST(ERR, 4, a_close_ends_by_its_deadline_across_a_cut_over_a_wire, over_a_wire.full()) {
  Peer peer = test.start_process_peer(sees_it_lost);
  const Wire wire(peer);
  const Probe probe(peer.control());
  Side side = connect_side(test, peer.control(), on_the_wire());
  (void)side.take_key(peer.control());
  const GuardedBuffer buffer(1000);
  weft::MemoryRegion region = side.region(buffer);
  cut_the(wire, Cut::silent, true);
  CHECK(!probe.passes(100ms)) << "there was no cut";
  REQUIRE_EQ(side.endpoint.send(region.whole(), 1), Status::ok);
  peer.control().barrier();
  const Stopwatch watch;
  side.endpoint.close(700ms);
  CHECK_LE(watch.without_stalls(), 100ms) << "close() returns at once";
  const auto all = side.completions.until_ended(side.endpoint, 5s);
  const Duration took = watch.elapsed();
  CHECK_LE(watch.without_stalls(), 1500ms);
  REQUIRE_EQ(all.size(), 2) << list(all);
  CHECK_EQ(all[0].operation, Operation::send);
  CHECK_EQ(all[1].status, Status::local_close);
  const auto ended = peer.control().receive_value<Status>();
  CHECK(ended == Status::peer_lost || ended == Status::disconnected) << weft::to_string(ended);
  const auto delivered = peer.control().receive_value<bool>();
  CHECK(delivered || took >= 600ms) << "it did not wait for its message to be delivered";
  peer.control().send_value(std::uint64_t{0});
  peer.control().barrier();
  peer.finish();
}

}  // namespace
}  // namespace conformance
