// CON-1: one address form on every provider.
#include <filesystem>
#include <string>

#include "harness/side.hpp"

namespace conformance {
namespace {

using weft::Status;

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

bool starts_with(const std::string& text, const std::string& begin) { return text.rfind(begin, 0) == 0; }

weft::ListenOptions to(const Completions& completions) {
  weft::ListenOptions options;
  options.queue = completions.queue();
  return options;
}

// Listens at `listen`, connects to `host` with the port that came of it, and sees a message pass.
void check_route(const Test& test, const std::string& listen, const std::string& host) {
  Loop loop;
  loop.context = test.open_context();
  loop.near = Completions(loop.context.create_completion_queue());
  loop.far = Completions(loop.context.create_completion_queue());
  loop.listener = loop.context.listen(listen, to(loop.far));
  CHECK_NE(loop.listener.port(), 0) << listen;
  CHECK(ends_with(loop.listener.address(), ':' + std::to_string(loop.listener.port())))
      << loop.listener.address();
  weft::EndpointOptions options;
  options.queue = loop.near.queue();
  loop.near_endpoint = loop.context.connect(host + ':' + std::to_string(loop.listener.port()), options);
  weft::ConnectionRequest request = next_request(loop.far, loop.listener);
  options.queue = loop.far.queue();
  loop.far_endpoint = request.accept(options);
  loop.near_endpoint.wait_up(patience);
  loop.far_endpoint.wait_up(patience);
  check_ping(loop);
  for (const weft::Endpoint& endpoint : {loop.near_endpoint, loop.far_endpoint}) {
    for (const std::string& address : {endpoint.peer_address(), endpoint.local_address()}) {
      CHECK(!starts_with(address, "0.0.0.0:") && !starts_with(address, "[::]:") && !ends_with(address, ":0"))
          << "a wildcard was handed out: " << address;
    }
  }
}

bool is_bound_to_loopback_or_any(const Test& test) { return host_of(test.open_context()) == "127.0.0.1"; }

CONFORMANCE_TEST(CON, 1, port_zero_takes_a_free_port_and_tells_it, alone) {
  weft::Context context = test.open_context();
  Completions completions(context.create_completion_queue());
  const std::string host = host_of(context);
  const weft::Listener first = context.listen(host + ":0", to(completions));
  const weft::Listener second = context.listen(host + ":0", to(completions));
  CHECK_NE(first.port(), 0);
  CHECK_NE(first.port(), second.port());
  CHECK_EQ(first.address(), host + ':' + std::to_string(first.port()));
}

CONFORMANCE_TEST(CON, 1, numeric_addresses_work, alone) {
  const std::string host = host_of(test.open_context());
  check_route(test, host + ":0", host);
}

CONFORMANCE_TEST(CON, 1, a_wildcard_is_never_handed_to_a_peer, alone) {
  const std::string host = host_of(test.open_context());
  check_route(test, ":0", host);
  check_route(test, "0.0.0.0:0", host);
}

CONFORMANCE_TEST(CON, 1, names_work, alone) {
  if (!is_bound_to_loopback_or_any(test)) {
    // The name of an address of this device is not known here; that the name is looked up shows in the
    // outcome.
    weft::Context context = test.open_context();
    Completions completions(context.create_completion_queue());
    weft::EndpointOptions options;
    options.queue = completions.queue();
    const weft::Endpoint endpoint = context.connect("no-such-host.invalid:7", options);
    CHECK_EQ(completions.next_of(weft::Operation::connect, 30s).status, Status::unreachable);
    return;
  }
  check_route(test, "127.0.0.1:0", "localhost");
  check_route(test, "localhost:0", "localhost");
}

CONFORMANCE_TEST(CON, 1, the_bound_address_is_the_one_that_peers_see, alone) {
  if (!is_bound_to_loopback_or_any(test)) {
    Loop loop = make_loop(test);
    CHECK(starts_with(loop.near_endpoint.peer_address(), host_of(loop.context) + ':'));
    return;
  }
  weft::Context context = test.open_context();
  Completions completions(context.create_completion_queue());
  weft::Listener listener = context.listen("127.0.0.2:0", to(completions));
  CHECK_EQ(listener.address(), "127.0.0.2:" + std::to_string(listener.port()));
  weft::EndpointOptions options;
  options.queue = completions.queue();
  weft::Endpoint near = context.connect(listener.address(), options);
  weft::Endpoint far = next_request(completions, listener).accept(options);
  near.wait_up(patience);
  far.wait_up(patience);
  CHECK_EQ(near.peer_address(), listener.address());
  CHECK_EQ(far.local_address(), listener.address());
  CHECK_EQ(far.peer_address(), near.local_address());
}

CONFORMANCE_TEST(CON, 1, ipv6_addresses_work_where_the_host_has_them, alone) {
  if (std::filesystem::exists("/proc/net/if_inet6") && is_bound_to_loopback_or_any(test)) {
    check_route(test, "[::1]:0", "[::1]");
    return;
  }
  weft::Context context = test.open_context();
  Completions completions(context.create_completion_queue());
  const auto error = error_of([&] { (void)context.listen("[::1]:0", to(completions)); });
  CHECK(error.has_value()) << "listens at an address that this device does not have";
}

CONFORMANCE_TEST(CON, 1, what_is_no_address_is_refused_at_once, alone) {
  weft::Context context = test.open_context();
  Completions completions(context.create_completion_queue());
  weft::EndpointOptions options;
  options.queue = completions.queue();
  for (const char* text : {"", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:7x",
                           "[::1:7", "::1]:7", "[::1]", "[::1]7", "1:2:3"}) {
    const auto listening = error_of([&] { (void)context.listen(text, to(completions)); });
    CHECK(listening && listening->code() == Status::invalid_argument) << "listen(\"" << text << "\")";
    const auto connecting = error_of([&] { (void)context.connect(text, options); });
    CHECK(connecting && connecting->code() == Status::invalid_argument) << "connect(\"" << text << "\")";
    if (connecting) {
      CHECK(std::string(connecting->what()).find(text) != std::string::npos) << connecting->what();
    }
  }
}

CONFORMANCE_TEST(CON, 1, a_port_in_use_is_an_error_that_says_so, alone) {
  weft::Context context = test.open_context();
  Completions completions(context.create_completion_queue());
  const weft::Listener first = context.listen(host_of(context) + ":0", to(completions));
  const auto error = error_of([&] { (void)context.listen(first.address(), to(completions)); });
  REQUIRE(error.has_value()) << "two listeners at " << first.address();
  CHECK(std::string(error->what()).find(std::to_string(first.port())) != std::string::npos) << error->what();
}

}  // namespace
}  // namespace conformance
