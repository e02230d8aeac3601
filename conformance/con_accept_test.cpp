// CON-4, CON-5, CON-6, CON-8: private data, the time before an endpoint is up, bursts, negotiated limits.
#include <string>
#include <vector>

#include "harness/raw_socket.hpp"
#include "harness/side.hpp"

namespace conformance {
namespace {

using weft::Completion;
using weft::Operation;
using weft::Status;

// A listener and what is needed to dial it, in one context.
struct Station {
  explicit Station(const Test& test)
      : context(test.open_context()),
        dialer(context.create_completion_queue()),
        arrivals(context.create_completion_queue()) {
    weft::ListenOptions listen;
    listen.queue = arrivals.queue();
    listener = context.listen(host_of(context) + ":0", listen);
    dial_options.queue = dialer.queue();
    accept_options.queue = arrivals.queue();
  }

  weft::Context context;
  Completions dialer;
  Completions arrivals;
  weft::Listener listener;
  weft::EndpointOptions dial_options;
  weft::EndpointOptions accept_options;
};

std::vector<std::size_t> private_data_sizes(const weft::Context& context) {
  return {0, 1, 255, 1024, context.attributes().max_private_data};
}

CONFORMANCE_TEST(CON, 4, private_data_arrives_exactly_with_connect_and_accept, alone) {
  Station station(test);
  CHECK_GE(station.context.attributes().max_private_data, 1024);
  for (const std::size_t size : private_data_sizes(station.context)) {
    const GuardedBuffer from_dialer(size);
    const GuardedBuffer from_listener(size);
    from_dialer.fill(test.seed() + size);
    from_listener.fill(test.seed() + size + 1);
    station.dial_options.private_data = from_dialer.bytes();
    station.accept_options.private_data = from_listener.bytes();
    weft::Endpoint near = station.context.connect(station.listener.address(), station.dial_options);
    from_dialer.poison();
    weft::ConnectionRequest request = next_request(station.arrivals, station.listener);
    REQUIRE_EQ(request.private_data().size(), size);
    CHECK_EQ(pattern_difference(request.private_data(), test.seed() + size), "")
        << size << " bytes with connect";
    CHECK(near.peer_private_data().empty());
    weft::Endpoint far = request.accept(station.accept_options);
    from_listener.poison();
    near.wait_up(patience);
    far.wait_up(patience);
    REQUIRE_EQ(near.peer_private_data().size(), size);
    CHECK_EQ(pattern_difference(near.peer_private_data(), test.seed() + size + 1), "")
        << size << " with accept";
  }
}

CONFORMANCE_TEST(CON, 4, private_data_arrives_exactly_with_reject, alone) {
  Station station(test);
  for (const std::size_t size : private_data_sizes(station.context)) {
    const GuardedBuffer reason(size);
    reason.fill(test.seed() + size);
    const weft::Endpoint near = station.context.connect(station.listener.address(), station.dial_options);
    next_request(station.arrivals, station.listener).reject(reason.bytes());
    CHECK_EQ(station.dialer.next_of(Operation::connect).status, Status::rejected);
    REQUIRE_EQ(near.peer_private_data().size(), size);
    CHECK_EQ(pattern_difference(near.peer_private_data(), test.seed() + size), "")
        << size << " bytes with reject";
  }
}

CONFORMANCE_TEST(CON, 4, longer_private_data_is_refused_before_anything_is_sent, alone) {
  Station station(test);
  const std::vector<std::byte> too_long(station.context.attributes().max_private_data + 1);
  const auto is_refusal = [](const std::optional<weft::Error>& error) {
    return error && (error->code() == Status::invalid_argument || error->code() == Status::too_big);
  };
  station.dial_options.private_data = too_long;
  CHECK(is_refusal(
      error_of([&] { (void)station.context.connect(station.listener.address(), station.dial_options); })));
  CHECK_EQ(list(station.arrivals.all_within(200ms)), "(none)");
  // The request lives on after a refused answer, or is rejected with it; the dialer does not wait in vain.
  station.dial_options.private_data = {};
  weft::Endpoint near = station.context.connect(station.listener.address(), station.dial_options);
  {
    weft::ConnectionRequest request = next_request(station.arrivals, station.listener);
    station.accept_options.private_data = too_long;
    CHECK(is_refusal(error_of([&] { (void)request.accept(station.accept_options); })));
    CHECK_EQ(list(station.dialer.all_within(100ms)), "(none)");
    CHECK(is_refusal(error_of([&] { request.reject(too_long); })));
    CHECK_EQ(list(station.dialer.all_within(100ms)), "(none)");
  }
  CHECK_EQ(station.dialer.next_of(Operation::connect).status, Status::rejected);
}

CONFORMANCE_TEST(CON, 5, before_it_is_up_receives_are_taken_and_sends_answer_again, alone) {
  Station station(test);
  const GuardedBuffer buffer(64);
  weft::MemoryRegion region = station.context.register_memory(buffer.bytes(), weft::Access::local_write);
  weft::Endpoint near = station.context.connect(station.listener.address(), station.dial_options);
  weft::ConnectionRequest request = next_request(station.arrivals, station.listener);
  weft::Endpoint far = request.prepare(station.accept_options);
  for (weft::Endpoint* endpoint : {&near, &far}) {
    CHECK_EQ(endpoint->state(), weft::EndpointState::connecting);
    CHECK_EQ(endpoint->receive(region.slice(0, 32), 1), Status::ok);
    CHECK_EQ(endpoint->send(region.slice(32, 32), 2), Status::again);
    CHECK_EQ(endpoint->send(weft::Segment::inline_bytes("x", 1), 2, weft::Flags::inline_data), Status::again);
    CHECK_EQ(endpoint->flush(3), Status::again);
    const auto error = error_of([&] { (void)endpoint->import_memory({}); });
    CHECK(error.has_value());
  }
  pause(100ms);
  CHECK_EQ(near.send(region.slice(32, 32), 2), Status::again);
  request.accept();
  near.wait_up(patience);
  far.wait_up(patience);
  CHECK_EQ(near.send(region.slice(32, 32), 2), Status::ok);
  CHECK_EQ(far.send(region.slice(32, 32), 2), Status::ok);
  CHECK_EQ(station.arrivals.next_of(Operation::receive).context, 1);
  CHECK_EQ(station.dialer.next_of(Operation::receive).context, 1);
}

constexpr std::size_t first_messages = 16;

void sends_at_once(Test& test, Channel& control) {
  Side side = connect_side(test, control);
  const GuardedBuffer buffer(first_messages * 100);
  buffer.fill(test.seed());
  weft::MemoryRegion region = side.region(buffer);
  for (std::size_t i = 0; i < first_messages; ++i) {
    CHECK_EQ(post_soon([&] { return side.endpoint.send(region.slice(100 * i, 100), i); }), Status::ok);
  }
  for (const Completion& sent : side.completions.take(first_messages)) CHECK_EQ(sent.status, Status::ok);
  control.barrier();
}

CONFORMANCE_TEST(CON, 5, what_is_sent_the_moment_the_peer_is_up_is_never_lost, with_peer) {
  Peer peer = test.start_peer(sends_at_once);
  const GuardedBuffer buffer(first_messages * 100);
  buffer.poison();
  weft::MemoryRegion region;
  SideOptions options;
  options.prepared = [&](weft::Context& context, weft::Endpoint& endpoint) {
    region = context.register_memory(buffer.bytes(), weft::Access::local_write);
    for (std::size_t i = 0; i < first_messages; ++i) {
      REQUIRE_EQ(endpoint.receive(region.slice(100 * i, 100), i), Status::ok);
    }
  };
  Side side = accept_side(test, peer.control(), options);
  for (std::size_t i = 0; i < first_messages; ++i) {
    const Completion received = side.completions.next();
    CHECK_EQ(received.operation, Operation::receive);
    CHECK_EQ(received.context, i);
    CHECK_EQ(received.bytes, 100);
  }
  CHECK_EQ(buffer.difference(test.seed()), "");
  peer.control().barrier();
  peer.finish();
}

constexpr std::uint64_t burst = 64;

void connects_in_a_burst(Test& test, Channel& control) {
  weft::Context context = test.open_context();
  Completions completions(context.create_completion_queue());
  const std::string address = control.receive();
  std::vector<weft::Endpoint> endpoints;
  weft::EndpointOptions options;
  options.queue = completions.queue();
  options.timeout = 30s;  // the acceptor is slow on purpose; how slow, the machine decides
  for (options.user_value = 0; options.user_value < burst; ++options.user_value) {
    endpoints.push_back(context.connect(address, options));
  }
  for (std::uint64_t i = 0; i < burst; ++i) {
    const Completion up = completions.next_of(Operation::connect);
    REQUIRE_EQ(up.status, Status::ok) << endpoints[up.user_value].describe_end();
    const auto number = up.user_value;
    CHECK_EQ(endpoints[number].send(weft::Segment::inline_bytes(&number, sizeof(number)), number,
                                    weft::Flags::inline_data),
             Status::ok);
  }
  control.barrier(30s);
}

CONFORMANCE_TEST(CON, 6, sixty_four_connects_at_once_all_succeed, with_peer.within(60s)) {
  Peer peer = test.start_peer(connects_in_a_burst);
  Station station(test);
  const GuardedBuffer buffer(burst * 8);
  weft::MemoryRegion region = station.context.register_memory(buffer.bytes(), weft::Access::local_write);
  peer.control().send(station.listener.address());
  std::vector<weft::Endpoint> endpoints;
  for (std::uint64_t i = 0; i < burst; ++i) {
    weft::ConnectionRequest request = next_request(station.arrivals, station.listener);
    endpoints.push_back(request.prepare(station.accept_options));
    REQUIRE_EQ(endpoints.back().receive(region.slice(8 * i, 8), i), Status::ok);
    request.accept();
    pause(10ms);
  }
  std::vector<int> seen(burst, 0);
  for (std::uint64_t i = 0; i < burst; ++i) {
    const Completion received = station.arrivals.next_of(Operation::receive, 20s);
    CHECK_EQ(received.status, Status::ok);
    const auto number = buffer.at<std::uint64_t>(8 * received.context);
    REQUIRE_LE(number, burst - 1);
    ++seen[number];
  }
  CHECK_EQ(seen, std::vector<int>(burst, 1));
  peer.control().barrier();
  peer.finish();
}

CONFORMANCE_TEST(CON, 8, both_ends_see_the_negotiated_limits, alone) {
  Station station(test);
  station.dial_options.send_depth = 16;
  station.dial_options.receive_depth = 200;
  station.accept_options.send_depth = 64;
  station.accept_options.receive_depth = 32;
  weft::Endpoint near = station.context.connect(station.listener.address(), station.dial_options);
  weft::Endpoint far = next_request(station.arrivals, station.listener).accept(station.accept_options);
  near.wait_up(patience);
  far.wait_up(patience);
  const weft::Limits a = near.limits();
  const weft::Limits b = far.limits();
  CHECK_EQ(a.max_message, b.max_message);
  CHECK_GE(a.max_message, std::uint64_t{1} << 20);
  CHECK_EQ(a.max_transfer, b.max_transfer);
  CHECK_GE(a.max_transfer, std::uint64_t{1} << 40);
  CHECK_EQ(a.max_outstanding_reads, b.max_outstanding_reads);
  CHECK_GE(a.max_outstanding_reads, 1);
  for (const weft::Limits& limits : {a, b}) {
    CHECK_GE(limits.max_segments, 4);
    CHECK_GE(limits.max_inline, 32);
    CHECK_GE(limits.send_depth, 1);
    CHECK_GE(limits.receive_depth, 1);
    CHECK_LE(limits.send_depth, 16) << "the smaller of both sides";
    CHECK_LE(limits.receive_depth, 32) << "the smaller of both sides";
    const weft::Limits most = station.context.attributes().limits;
    CHECK_LE(limits.max_message, most.max_message);
    CHECK_LE(limits.send_depth, most.send_depth);
    CHECK_LE(limits.receive_depth, most.receive_depth);
    CHECK_LE(limits.max_inline, most.max_inline);
    CHECK_LE(limits.max_segments, most.max_segments);
  }
}

}  // namespace
}  // namespace conformance
