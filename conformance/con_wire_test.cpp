// CON-1, CON-2: addresses of another network, with scopes; names with several addresses of which some lead
// nowhere.
#include <string>

#include "harness/network.hpp"
#include "harness/side.hpp"

namespace conformance {
namespace {

using weft::Completion;
using weft::Operation;
using weft::Status;

// Listens where it is told, accepts whoever comes and sends back what it gets, until it is told no more.
void echoes(Test& test, Channel& control) {
  weft::Context context = test.open_context();
  Completions completions(context.create_completion_queue());
  weft::ListenOptions listen;
  listen.queue = completions.queue();
  for (std::string where = control.receive(); !where.empty(); where = control.receive()) {
    weft::Listener listener = context.listen(where, listen);
    control.send(listener.address());
    weft::EndpointOptions options;
    options.queue = completions.queue();
    weft::Endpoint endpoint = next_request(completions, listener).accept(options);
    endpoint.wait_up(patience);
    const GuardedBuffer buffer(100);
    weft::MemoryRegion region = context.register_memory(buffer.bytes(), weft::Access::local_write);
    REQUIRE_EQ(endpoint.receive(region.whole(), 1), Status::ok);
    control.send(endpoint.local_address());
    control.send(endpoint.peer_address());
    REQUIRE_EQ(completions.next_of(Operation::receive, endpoint).status, Status::ok);
    REQUIRE_EQ(endpoint.send(region.whole(), 2), Status::ok);
    CHECK_EQ(completions.until_ended(endpoint).back().status, Status::disconnected);
  }
}

struct Caller {
  explicit Caller(const Test& test)
      : context(test.open_context()),
        completions(context.create_completion_queue()),
        buffer(200),
        region(context.register_memory(buffer.bytes(), weft::Access::local_write)) {
    options.queue = completions.queue();
  }

  weft::Endpoint connect(const std::string& address) {
    weft::Endpoint endpoint = context.connect(address, options);
    return endpoint.wait_up(patience);
  }
  void check_echo(weft::Endpoint& endpoint, std::uint64_t seed) {
    fill_pattern(buffer.bytes(0, 100), seed);
    buffer.poison(100, 100);
    REQUIRE_EQ(endpoint.receive(region.slice(100, 100), 1), Status::ok);
    REQUIRE_EQ(endpoint.send(region.slice(0, 100), 2), Status::ok);
    CHECK_EQ(completions.next_of(Operation::receive, endpoint).status, Status::ok);
    CHECK_EQ(completions.next_of(Operation::send, endpoint).status, Status::ok);
    CHECK_EQ(pattern_difference(buffer.bytes(100, 100), seed), "");
  }

  weft::Context context;
  Completions completions;
  weft::EndpointOptions options;
  GuardedBuffer buffer;
  weft::MemoryRegion region;
};

std::string port_of(const std::string& address) { return address.substr(address.rfind(':')); }
std::string host_part(const std::string& address) { return address.substr(0, address.rfind(':')); }

void say_goodbye(Caller& caller, weft::Endpoint& endpoint) {
  endpoint.close(2s);
  CHECK_EQ(caller.completions.until_ended(endpoint).back().status, Status::local_close);
}

CONFORMANCE_TEST(CON, 1, addresses_and_scopes_work_over_a_wire, over_a_wire) {
  Peer peer = test.start_process_peer(echoes);
  const Wire wire(peer);  // plugged in: a context may look for its interfaces once
  Caller caller(test);
  const std::string scope = std::string("%") + Wire::interface;
  struct Way {
    std::string listen;
    std::string connect;
    std::string seen;  // the host under which the peer is known then
  };
  const std::string v4 = Wire::peer.v4;
  const std::string v6 = std::string("[") + Wire::peer.v6 + ']';
  const std::string link = std::string("[") + Wire::peer.link + scope + ']';
  std::uint64_t seed = test.seed();
  for (const Way& way : {Way{v4, v4, v4}, Way{v6, v6, v6}, Way{link, link, link}, Way{"", v4, v4},
                         Way{"0.0.0.0", v4, v4}, Way{"[::]", v6, v6}, Way{"", link, link}}) {
    peer.control().send(way.listen + ":0");
    const std::string listens = peer.control().receive();
    const std::string address = way.connect + port_of(listens);
    weft::Endpoint endpoint = caller.connect(address);
    CHECK_EQ(endpoint.peer_address(), address) << "listening at '" << way.listen << '\'';
    const std::string seen_here = peer.control().receive();
    const std::string seen_there = peer.control().receive();
    CHECK_EQ(host_part(seen_here), way.seen) << "the peer's own address, connected to " << address;
    CHECK_EQ(port_of(seen_there), port_of(endpoint.local_address()));
    CHECK_EQ(host_part(seen_there), host_part(endpoint.local_address())) << "connected to " << address;
    caller.check_echo(endpoint, ++seed);
    say_goodbye(caller, endpoint);
  }
  peer.control().send("");
  peer.finish();
}

// A device chosen by its address is where connections come from, even to a place that another address of this
// host would reach by itself.
CONFORMANCE_TEST(SEL, 2, a_device_named_by_address_is_the_source_over_a_wire, over_a_wire) {
  Peer peer = test.start_process_peer([](Test&, Channel& control) { control.barrier(60s); });
  const Wire wire(peer);
  weft::Context anywhere = test.open_context();
  Completions arrivals(anywhere.create_completion_queue());
  weft::ListenOptions listen;
  listen.queue = arrivals.queue();
  weft::Listener listener = anywhere.listen("127.0.0.1:0", listen);
  weft::ContextOptions options = test.context_options();
  options.device = Wire::test.v4;
  weft::Context bound = weft::Context::open(options);
  CHECK_EQ(bound.attributes().local_address, Wire::test.v4);
  Completions completions(bound.create_completion_queue());
  weft::EndpointOptions endpoint_options;
  endpoint_options.queue = completions.queue();
  weft::Endpoint endpoint = bound.connect(listener.address(), endpoint_options);
  const weft::ConnectionRequest request = next_request(arrivals, listener);
  CHECK_EQ(host_part(request.peer_address()), Wire::test.v4);
  CHECK_EQ(host_part(endpoint.local_address()), Wire::test.v4);
  endpoint.abort();
  peer.control().barrier();
  peer.finish();
}

CONFORMANCE_TEST(CON, 1, a_link_address_needs_its_scope_over_a_wire, over_a_wire) {
  Peer peer = test.start_process_peer([](Test&, Channel& control) { control.barrier(); });
  const Wire wire(peer);
  Caller caller(test);
  // Without one nobody knows the way; with that of an interface that is not there, neither.
  for (const std::string& scope : {std::string(), std::string("%nosuch0")}) {
    const std::string address = std::string("[") + Wire::peer.link + scope + "]:7";
    std::string text;
    Status status = Status::ok;
    try {
      const weft::Endpoint endpoint = caller.context.connect(address, caller.options);
      status = caller.completions.next_of(Operation::connect).status;
      text = endpoint.describe_end();
    } catch (const weft::Error& error) {
      status = error.code();
      text = error.what();
    }
    CHECK(status == Status::unreachable || status == Status::invalid_argument)
        << address << " gave " << weft::to_string(status);
    CHECK(text.find(Wire::peer.link) != std::string::npos) << text;
  }
  peer.control().barrier();
  peer.finish();
}

CONFORMANCE_TEST(CON, 1, a_name_is_tried_on_all_its_addresses_over_a_wire, over_a_wire) {
  set_hosts(std::string("127.0.0.1 localhost\n") +  //
            Wire::nobody.v4 + " silent-first\n" +   //
            Wire::peer.v4 + " silent-first\n" +     //
            Wire::nobody.v6 + " two-families\n" +   //
            Wire::peer.v4 + " two-families\n" +     //
            "203.0.113.9 no-way-first\n" +          //
            Wire::peer.v4 + " no-way-first\n");
  Peer peer = test.start_process_peer(echoes);
  const Wire wire(peer);
  wire.make_nobody_silent();
  Caller caller(test);
  std::uint64_t seed = test.seed();
  for (const char* name : {"silent-first", "two-families", "no-way-first"}) {
    peer.control().send(std::string(Wire::peer.v4) + ":0");
    const std::string address = name + port_of(peer.control().receive());
    const Stopwatch watch;
    weft::Endpoint endpoint = caller.connect(address);
    CHECK_LE(watch.without_stalls(), 3s) << address << ": an address that does not answer held up the next";
    CHECK_EQ(host_part(endpoint.peer_address()), Wire::peer.v4) << address;
    (void)peer.control().receive();
    (void)peer.control().receive();
    caller.check_echo(endpoint, ++seed);
    say_goodbye(caller, endpoint);
  }
  peer.control().send("");
  peer.finish();
}

CONFORMANCE_TEST(CON, 2, silence_times_out_and_no_way_is_unreachable_over_a_wire, over_a_wire) {
  Peer peer = test.start_process_peer([](Test&, Channel& control) { control.barrier(); });
  const Wire wire(peer);
  wire.make_nobody_silent();
  Caller caller(test);
  caller.options.timeout = 1s;
  {
    const Stopwatch watch;
    const weft::Endpoint endpoint =
        caller.context.connect(std::string(Wire::nobody.v4) + ":7", caller.options);
    CHECK_LE(watch.without_stalls(), 100ms) << "connecting blocked";
    CHECK_EQ(caller.completions.next_of(Operation::connect).status, Status::timed_out);
    CHECK_GE(watch.elapsed(), 900ms);
    CHECK_LE(watch.without_stalls(), 2s);
    CHECK(endpoint.describe_end().find(Wire::nobody.v4) != std::string::npos) << endpoint.describe_end();
  }
  {
    const weft::Endpoint endpoint = caller.context.connect("203.0.113.9:7", caller.options);
    CHECK_EQ(caller.completions.next_of(Operation::connect).status, Status::unreachable);
    CHECK(endpoint.describe_end().find("203.0.113.9") != std::string::npos) << endpoint.describe_end();
  }
  {
    const weft::Endpoint endpoint = caller.context.connect(std::string(Wire::peer.v4) + ":7", caller.options);
    CHECK_EQ(caller.completions.next_of(Operation::connect).status, Status::refused);
  }
  peer.control().barrier();
  peer.finish();
}

}  // namespace
}  // namespace conformance
