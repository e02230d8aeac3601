// ERR-3, ERR-4: a wire that is cut, with or without a word, and one that comes back in time. A provider's
// data may go another way; its control connection goes this one, and what is said to be done must be done.
#include <algorithm>
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
  // One check, however many were: where memory is shared, a cut wire does not keep them back.
  std::string wrong;
  for (std::size_t i = 0; i < done; ++i) {
    const std::string difference = pattern_difference(buffer.bytes(i * piece, piece), test.seed() + i);
    if (!difference.empty()) wrong += "write " + std::to_string(i) + ": " + difference + "; ";
  }
  CHECK_EQ(wrong, "") << "of the writes that were said to be done";
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
  const Stopwatch cutting;
  cut_the(wire, cut, true);
  const Duration cutting_took = cutting.elapsed();
  std::vector<std::uint64_t> posted;
  for (std::uint64_t i = 0; with_data && i < pieces; ++i) {
    fill_pattern(buffer.bytes(i * piece, piece), test.seed() + i);
    const Status status = side.endpoint.write(region.slice(i * piece, piece), remote.at(i * piece), i);
    if (status == Status::ok) posted.push_back(i);
  }
  CHECK(!with_data || !posted.empty())
      << "the cut was made within " << cutting_took.count() / 1'000'000 << " ms";
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

// How long a cut may last that harms nothing. To notice a lost peer in time, a provider has to make up its
// mind some time before `peer_timeout`.
// Long enough for commands that cut a wire and mend it: on an emulated processor each takes its time.
std::chrono::milliseconds timeout_of_brief_cuts(const Test& test) {
  return test.setting().fabric_class == FabricClass::emulated ? 18s : 6s;
}
Duration brief(const Test& test) { return timeout_of_brief_cuts(test) / 3; }

constexpr std::uint64_t echoed = 10;
constexpr std::uint64_t cut_at = 3;
constexpr std::size_t echo_size = 20'000;

// One connection after the other, as long as the test wants: takes messages and sends each back, and tells in
// the end whether the connection held.
void echoes_all(Test& test, Channel& control) {
  const RawSocket other_end = Probe::other_end(control);
  while (control.receive_value<bool>(60s)) {
    Side side = accept_side(test, control, on_the_wire(timeout_of_brief_cuts(test)));
    const GuardedBuffer buffer(echo_size);
    weft::MemoryRegion region = side.region(buffer);
    Status status = Status::ok;
    for (std::uint64_t i = 0; i < echoed && status == Status::ok; ++i) {
      status = side.endpoint.receive(region.whole(), i);
      if (i == 0) control.barrier();
      if (status == Status::ok) status = side.completions.next_of(Operation::receive, 15s).status;
      if (status != Status::ok) break;
      CHECK_EQ(buffer.difference(test.seed() + i), "") << "message " << i;
      status = side.endpoint.send(region.whole(), i);
      if (status == Status::ok) status = side.completions.next_of(Operation::send, 15s).status;
    }
    control.send_value(status);
    control.barrier(30s);
  }
}

// A connection, a cut in the middle of a message's way there or back, and what became of it.
struct Survival {
  Status status = Status::ok;
  Duration cut{0};  // from before the wire was touched until it was whole again, as the clock saw it
  std::string end;
};

Survival cut_briefly(Test& test, Peer& peer, const Wire& wire, const Probe& probe, Cut cut) {
  peer.control().send_value(true);
  Side side = connect_side(test, peer.control(), on_the_wire(timeout_of_brief_cuts(test)));
  const GuardedBuffer out(echo_size);
  const GuardedBuffer in(echo_size);
  weft::MemoryRegion out_region = side.region(out);
  weft::MemoryRegion in_region = side.region(in);
  peer.control().barrier();
  Survival survival;
  Status& status = survival.status;
  for (std::uint64_t i = 0; i < echoed && status == Status::ok; ++i) {
    const Stopwatch watch;
    if (i == cut_at) cut_the(wire, cut, true);
    out.fill(test.seed() + i);
    in.poison();
    status = side.endpoint.receive(in_region.whole(), i);
    if (status == Status::ok) status = side.endpoint.send(out_region.whole(), i);
    if (i == cut_at) {
      CHECK(!probe.passes(500ms)) << "there was no cut";
      cut_the(wire, cut, false);
      survival.cut = watch.elapsed();
    }
    if (status == Status::ok) status = side.completions.next_of(Operation::receive, 15s).status;
    if (status != Status::ok) break;
    CHECK_EQ(in.difference(test.seed() + i), "") << "message " << i;
    status = side.completions.next_of(Operation::send, 15s).status;
  }
  CHECK(probe.passes(15s)) << "the wire did not come back";
  const auto there = peer.control().receive_value<Status>(30s);
  if (status == Status::ok) status = there;
  survival.end = side.endpoint.describe_end();
  peer.control().barrier(30s);
  return survival;
}

CONFORMANCE_TEST(ERR, 3, a_wire_that_comes_back_in_time_harms_nothing_over_a_wire, over_a_wire.within(150s)) {
  Peer peer = test.start_process_peer(echoes_all);
  const Wire wire(peer);
  const Probe probe(peer.control());
  const auto milliseconds = [](Duration time) {
    return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(time).count()) + " ms";
  };
  constexpr int attempts = 5;
  for (const Cut cut : {Cut::plug_here, Cut::plug_there, Cut::silent_one_way}) {
    // On a busy machine it can take seconds to plug in again. Such a cut proves nothing.
    Survival survival;
    Duration shortest = Duration::max();
    for (int i = 0; i < attempts; ++i) {
      survival = cut_briefly(test, peer, wire, probe, cut);
      shortest = std::min(shortest, survival.cut);
      if (survival.status == Status::ok || survival.cut < brief(test)) break;
    }
    REQUIRE(survival.status == Status::ok || survival.cut >= brief(test))
        << "a cut of " << milliseconds(survival.cut) << " ended the connection, whose peer_timeout is "
        << milliseconds(timeout_of_brief_cuts(test)) << ", with " << weft::to_string(survival.status) << ": "
        << survival.end;
    REQUIRE_EQ(survival.status, Status::ok)
        << "this machine is too slow to cut the wire for less than " << milliseconds(brief(test)) << ": of "
        << attempts << " cuts the shortest took " << milliseconds(shortest);
  }
  peer.control().send_value(false);
  peer.finish();
}

CONFORMANCE_TEST(ERR, 4, a_close_ends_by_its_deadline_across_a_cut_over_a_wire, over_a_wire.full()) {
  Peer peer = test.start_process_peer(sees_it_lost);
  const Wire wire(peer);
  const Probe probe(peer.control());
  // The close has its own deadline, and this side is not to notice the cut before it closes.
  Side side = connect_side(test, peer.control(), on_the_wire(20s));
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
