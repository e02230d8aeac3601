#include "harness/victim.hpp"

namespace conformance {

Victim::Victim(const Test& test) : loop(make_loop(test)), forbidden(65536) {
  forbidden.poison();
  forbidden_region = loop.region(forbidden, weft::Access::local_write | weft::Access::remote_read);
  options.queue = loop.far.queue();
  const RawSocket tap = RawSocket::listening();
  const weft::Endpoint endpoint = loop.context.connect("127.0.0.1:" + std::to_string(tap.port()), options);
  const RawSocket dialer = tap.accepted();
  REQUIRE(dialer.is_open());
  REQUIRE_EQ(dialer.receive(5s, Preamble{}.bytes().size()), Preamble{}.bytes());
  const auto hello = WrongPeer::hear(dialer);
  REQUIRE(hello && hello->type == Said::hello);
  introduction = Introduction::parsed(hello->payload);
  REQUIRE_EQ(introduction.payload(), hello->payload) << "the wrong peer could not be right if it wanted";
  introduction.context = std::string(16, 'w');
}

void Victim::clear() {
  while (loop.listener.next().has_value()) {
  }
  loop.near.collect();
  loop.far.collect();
}

void Victim::check_unharmed(const std::string& after) {
  CHECK_EQ(forbidden.touched(), "") << after;
  CHECK_EQ(loop.near_endpoint.state(), weft::EndpointState::up) << after;
  CHECK_EQ(loop.far_endpoint.state(), weft::EndpointState::up) << after;
  check_ping(loop);
}

}  // namespace conformance
