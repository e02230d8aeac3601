// CON-7: peers that speak another protocol, garbage, or nothing.
#include <string>
#include <thread>
#include <vector>

#include "harness/process_state.hpp"
#include "harness/raw_socket.hpp"
#include "harness/side.hpp"

namespace conformance {
namespace {

using weft::Operation;
using weft::Status;

struct Station {
  explicit Station(const Test& test)
      : context(test.open_context()), completions(context.create_completion_queue()) {
    weft::ListenOptions listen;
    listen.queue = completions.queue();
    listener = context.listen(host_of(context) + ":0", listen);
    options.queue = completions.queue();
  }

  // The listener still serves: a proper peer connects and exchanges messages.
  void check_it_serves() {
    weft::Endpoint near = context.connect(listener.address(), options);
    weft::Endpoint far = next_request(completions, listener).accept(options);
    near.wait_up(patience);
    far.wait_up(patience);
    check_ping(context, near, completions, far, completions);
    check_ping(context, far, completions, near, completions);
  }

  weft::Context context;
  Completions completions;
  weft::Listener listener;
  weft::EndpointOptions options;
};

std::string random_bytes(std::uint64_t seed, std::size_t size) {
  std::string bytes(size, '\0');
  fill_pattern(std::as_writable_bytes(std::span(bytes)), seed);
  return bytes;
}

CONFORMANCE_TEST(CON, 7, garbage_is_dropped_and_the_listener_serves_on, alone) {
  Station station(test);
  const std::string address = station.listener.address();
  std::vector<std::string> sayings = {"GET / HTTP/1.1\r\nHost: weft\r\n\r\n", "SSH-2.0-weft\r\n",
                                      std::string(64, '\0'), std::string(64, '\xff')};
  for (const std::size_t size : {1U, 8U, 100U, 5000U, 100000U}) {
    sayings.push_back(random_bytes(test.seed() + size, size));
  }
  std::vector<RawSocket> peers;
  for (const std::string& saying : sayings) {
    peers.push_back(RawSocket::connected_to(address));
    (void)peers.back().send(saying);
  }
  for (std::size_t i = 0; i < peers.size(); ++i) {
    // One byte may still be the begin of something; the deadline takes care of that one.
    if (sayings[i].size() >= 16) {
      CHECK(peers[i].closed_within(3s)) << "garbage number " << i << " was not dropped";
    }
  }
  for (int i = 0; i < 50; ++i) RawSocket::connected_to(address).close();
  CHECK_EQ(list(station.completions.all_within(200ms)), "(none)") << "garbage reached the program";
  station.check_it_serves();
}

CONFORMANCE_TEST(CON, 7, silent_peers_do_not_keep_others_out, alone) {
  Station station(test);
  std::vector<RawSocket> silent;
  for (int i = 0; i < 100; ++i) silent.push_back(RawSocket::connected_to(station.listener.address()));
  for (int i = 0; i < 5; ++i) station.check_it_serves();
  CHECK_EQ(list(station.completions.all_within(50ms)), "(none)");
}

CONFORMANCE_TEST(CON, 7, silent_peers_are_dropped_within_the_deadline, alone.full()) {
  Station station(test);
  std::vector<RawSocket> silent;
  for (int i = 0; i < 10; ++i) silent.push_back(RawSocket::connected_to(station.listener.address()));
  for (const RawSocket& peer : silent) CHECK(peer.closed_within(15s));
  station.check_it_serves();
}

// Answers whoever connects with `saying`, or with nothing, and closes or waits.
void answer_one(const RawSocket& listener, const std::string& saying, bool close_at_once) {
  RawSocket peer = listener.accepted();
  if (!peer.is_open()) return;
  (void)peer.send(saying);
  if (close_at_once) peer.close();
  if (peer.is_open()) (void)peer.closed_within(5s);
}

CONFORMANCE_TEST(CON, 7, connecting_to_a_stranger_fails_clearly, alone) {
  Station station(test);
  const RawSocket listener = RawSocket::listening();
  station.options.timeout = 2s;
  struct Stranger {
    std::string saying;
    bool close_at_once;
  };
  for (const Stranger& stranger :
       {Stranger{"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", false},
        Stranger{random_bytes(test.seed(), 300), false}, Stranger{"", true},
        Stranger{"220 mail ready\r\n", true}, Stranger{std::string(4096, '\xff'), false}}) {
    std::thread answering(answer_one, std::cref(listener), stranger.saying, stranger.close_at_once);
    {
      const weft::Endpoint endpoint =
          station.context.connect("127.0.0.1:" + std::to_string(listener.port()), station.options);
      const weft::Completion outcome = station.completions.next_of(Operation::connect, 5s);
      CHECK(outcome.status == Status::protocol || outcome.status == Status::incompatible)
          << weft::to_string(outcome.status) << " from a stranger who says \""
          << stranger.saying.substr(0, 20) << '"';
      CHECK(!endpoint.describe_end().empty());
    }
    answering.join();
  }
  station.options.timeout = 10s;
  station.check_it_serves();
}

CONFORMANCE_TEST(SEC, 1, a_handshake_with_damaged_bytes_harms_nobody, alone) {
  Station station(test);
  // What a proper dialer says first, taken from the wire.
  const RawSocket tap = RawSocket::listening();
  std::string hello;
  {
    const weft::Endpoint endpoint =
        station.context.connect("127.0.0.1:" + std::to_string(tap.port()), station.options);
    const RawSocket peer = tap.accepted();
    REQUIRE(peer.is_open());
    while (true) {
      const std::string more = peer.receive(200ms);
      if (more.empty()) break;
      hello += more;
    }
  }
  REQUIRE(!hello.empty());
  (void)station.completions.all_within(100ms);
  std::vector<RawSocket> peers;
  const std::size_t before = held_bytes();
  for (std::size_t at = 0; at < hello.size(); ++at) {
    std::string damaged = hello;
    damaged[at] = static_cast<char>(pattern_byte(test.seed(), at));
    RawSocket peer = RawSocket::connected_to(station.listener.address());
    (void)peer.send(damaged.substr(0, at % 7 == 0 ? at : damaged.size()));
    peers.push_back(std::move(peer));
    if (peers.size() == 32) peers.clear();
  }
  peers.clear();
  // Some damage is harmless, so that the dialer gets as far as an arrival; then it vanishes.
  while (station.listener.next().has_value()) {
  }
  (void)station.completions.all_within(300ms);
  while (station.listener.next().has_value()) {
  }
  station.check_it_serves();
  CHECK_LE(held_bytes(), before + (std::size_t{64} << 20)) << "memory grew with every stranger";
}

}  // namespace
}  // namespace conformance
