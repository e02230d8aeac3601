// CON-2, CON-3: how a connection attempt can end, and what it leaves behind.
#include <algorithm>
#include <string>

#include "harness/process_state.hpp"
#include "harness/raw_socket.hpp"
#include "harness/side.hpp"

namespace conformance {
namespace {

using weft::Completion;
using weft::EndpointState;
using weft::Operation;
using weft::Status;

// A context with one queue, and the address of a port where nobody listens.
struct Dialer {
  explicit Dialer(const Test& test)
      : context(test.open_context()), completions(context.create_completion_queue({.capacity = 1024})) {
    weft::ListenOptions listen;
    listen.queue = completions.queue();
    weft::Listener listener = context.listen(host_of(context) + ":0", listen);
    closed_address = listener.address();
    listener.close();
    options.queue = completions.queue();
    options.user_value = 4711;
  }

  // Connects and checks the only report of the attempt.
  Completion outcome(const std::string& address, Duration time) {
    weft::Endpoint endpoint = context.connect(address, options);
    const Completion completion = completions.next(time);
    CHECK_EQ(completion.operation, Operation::connect);
    CHECK_EQ(completion.endpoint_id, endpoint.id());
    CHECK_EQ(completion.user_value, 4711);
    CHECK_EQ(completion.bytes, 0);
    CHECK_EQ(endpoint.state(), EndpointState::ended);
    CHECK_EQ(endpoint.cause(), completion.status);
    CHECK(!endpoint.describe_end().empty());
    const GuardedBuffer buffer(8);
    weft::MemoryRegion region = context.register_memory(buffer.bytes(), weft::Access::local_write);
    CHECK_EQ(endpoint.send(region.whole(), 1), Status::not_connected);
    CHECK_EQ(endpoint.receive(region.whole(), 1), Status::not_connected);
    CHECK_EQ(list(completions.all_within(50ms)), "(none)");
    return completion;
  }

  weft::Context context;
  Completions completions;
  weft::EndpointOptions options;
  std::string closed_address;
};

CONFORMANCE_TEST(CON, 2, nobody_listens_is_refused, alone) {
  Dialer dialer(test);
  CHECK_EQ(dialer.outcome(dialer.closed_address, 3s).status, Status::refused);
  weft::Endpoint endpoint = dialer.context.connect(dialer.closed_address, dialer.options);
  const auto error = error_of([&] { (void)endpoint.wait_up(3s); });
  REQUIRE(error.has_value());
  CHECK_EQ(error->code(), Status::refused);
  CHECK(std::string(error->what()).find(dialer.closed_address) != std::string::npos) << error->what();
  CHECK_EQ(list(dialer.completions.all_within(50ms)), "(none)") << "wait_up leaves no report behind";
}

CONFORMANCE_TEST(CON, 2, a_silent_listener_times_out, alone) {
  Dialer dialer(test);
  const RawSocket silent = RawSocket::listening();
  dialer.options.timeout = 700ms;
  const Stopwatch watch;
  CHECK_EQ(dialer.outcome("127.0.0.1:" + std::to_string(silent.port()), 5s).status, Status::timed_out);
  CHECK_GE(watch.elapsed(), 650ms);
  CHECK_LE(watch.without_stalls(), 1500ms);
}

CONFORMANCE_TEST(CON, 2, a_listener_whose_program_never_answers_times_out, alone) {
  Dialer dialer(test);
  Completions arrivals(dialer.context.create_completion_queue());
  weft::ListenOptions listen;
  listen.queue = arrivals.queue();
  const weft::Listener listener = dialer.context.listen(host_of(dialer.context) + ":0", listen);
  dialer.options.timeout = 700ms;
  const Stopwatch watch;
  CHECK_EQ(dialer.outcome(listener.address(), 5s).status, Status::timed_out);
  CHECK_GE(watch.elapsed(), 650ms);
  CHECK_LE(watch.without_stalls(), 1500ms);
}

CONFORMANCE_TEST(CON, 2, wait_up_honours_its_own_time_and_the_attempt_goes_on, alone) {
  Dialer dialer(test);
  const RawSocket silent = RawSocket::listening();
  dialer.options.timeout = 1500ms;
  weft::Endpoint endpoint =
      dialer.context.connect("127.0.0.1:" + std::to_string(silent.port()), dialer.options);
  const Stopwatch watch;
  const auto error = error_of([&] { (void)endpoint.wait_up(200ms); });
  REQUIRE(error.has_value());
  CHECK_EQ(error->code(), Status::timed_out);
  CHECK_GE(watch.elapsed(), 190ms);
  CHECK_LE(watch.without_stalls(), 700ms);
  CHECK_EQ(endpoint.state(), EndpointState::connecting);
  CHECK_EQ(dialer.completions.next_of(Operation::connect, 5s).status, Status::timed_out);
}

CONFORMANCE_TEST(CON, 2, connecting_never_blocks_the_caller, alone) {
  Dialer dialer(test);
  for (const std::string& address :
       {dialer.closed_address, std::string("no-such-host.invalid:7"), std::string("192.0.2.1:7")}) {
    dialer.options.timeout = 3s;
    const Stopwatch watch;
    weft::Endpoint endpoint = dialer.context.connect(address, dialer.options);
    CHECK_LE(watch.without_stalls(), 50ms) << "connect to " << address;
    CHECK_NE(dialer.completions.next_of(Operation::connect, 6s).status, Status::ok) << address;
  }
}

CONFORMANCE_TEST(CON, 2, a_name_that_does_not_resolve_is_unreachable, alone) {
  Dialer dialer(test);
  const Completion completion = dialer.outcome("no-such-host.invalid:7", 20s);
  // A resolver that does not answer is as good as none, after the deadline.
  CHECK(completion.status == Status::unreachable || completion.status == Status::timed_out)
      << weft::to_string(completion.status);
}

CONFORMANCE_TEST(CON, 2, closing_an_attempt_cancels_it, alone) {
  Dialer dialer(test);
  const RawSocket silent = RawSocket::listening();
  weft::Endpoint endpoint =
      dialer.context.connect("127.0.0.1:" + std::to_string(silent.port()), dialer.options);
  endpoint.close(1s);
  const Completion completion = dialer.completions.next(2s);
  CHECK_EQ(completion.operation, Operation::connect);
  CHECK_EQ(completion.status, Status::cancelled);
  CHECK_EQ(list(dialer.completions.all_within(100ms)), "(none)")
      << "endpoint_ended is for endpoints that were up";
}

CONFORMANCE_TEST(CON, 2, a_rejected_attempt_says_so, alone) {
  Dialer dialer(test);
  Completions arrivals(dialer.context.create_completion_queue());
  weft::ListenOptions listen;
  listen.queue = arrivals.queue();
  weft::Listener listener = dialer.context.listen(host_of(dialer.context) + ":0", listen);
  weft::Endpoint first = dialer.context.connect(listener.address(), dialer.options);
  next_request(arrivals, listener).reject();
  CHECK_EQ(dialer.completions.next_of(Operation::connect).status, Status::rejected);
  // A request that is dropped unanswered is a rejection too.
  weft::Endpoint second = dialer.context.connect(listener.address(), dialer.options);
  { const weft::ConnectionRequest dropped = next_request(arrivals, listener); }
  CHECK_EQ(dialer.completions.next_of(Operation::connect).status, Status::rejected);
}

CONFORMANCE_TEST(CON, 2, a_request_is_answered_once, alone) {
  Dialer dialer(test);
  weft::ListenOptions listen;
  listen.queue = dialer.completions.queue();
  weft::Listener listener = dialer.context.listen(host_of(dialer.context) + ":0", listen);
  weft::Endpoint near = dialer.context.connect(listener.address(), dialer.options);
  weft::ConnectionRequest request = next_request(dialer.completions, listener);
  weft::Endpoint far = request.accept(dialer.options);
  const auto accepting = error_of([&] { (void)request.accept(dialer.options); });
  CHECK(accepting && accepting->code() == Status::invalid_argument);
  const auto rejecting = error_of([&] { request.reject(); });
  CHECK(rejecting && rejecting->code() == Status::invalid_argument);
  near.wait_up(patience);
  far.wait_up(patience);
}

CONFORMANCE_TEST(CON, 2, wait_up_leaves_no_report_in_any_queue, alone) {
  Dialer dialer(test);
  Completions sends(dialer.context.create_completion_queue());
  Completions receives(dialer.context.create_completion_queue());
  weft::ListenOptions listen;
  listen.queue = dialer.completions.queue();
  weft::Listener listener = dialer.context.listen(host_of(dialer.context) + ":0", listen);
  weft::EndpointOptions apart;
  apart.send_completions = sends.queue();
  apart.receive_completions = receives.queue();
  weft::Endpoint near = dialer.context.connect(listener.address(), apart);
  weft::Endpoint far = next_request(dialer.completions, listener).accept(dialer.options);
  near.wait_up(patience);
  far.wait_up(patience);
  for (Completions* completions : {&sends, &receives, &dialer.completions}) {
    CHECK_EQ(list(completions->all_within(50ms)), "(none)");
  }
  // Without it there is one, where the receives complete.
  near = dialer.context.connect(listener.address(), apart);
  far = next_request(dialer.completions, listener).accept(dialer.options);
  CHECK_EQ(receives.next_of(Operation::connect, near).status, Status::ok);
  CHECK_EQ(dialer.completions.next_of(Operation::connect, far).status, Status::ok);
  CHECK_EQ(list(sends.all_within(50ms)), "(none)");
}

CONFORMANCE_TEST(CON, 2, one_thread_connects_to_itself_on_one_queue, alone) {
  Dialer dialer(test);
  Completions& completions = dialer.completions;
  weft::ListenOptions listen;
  listen.queue = completions.queue();
  listen.user_value = 99;
  weft::Listener listener = dialer.context.listen(host_of(dialer.context) + ":0", listen);
  dialer.options.user_value = 1;
  weft::Endpoint near = dialer.context.connect(listener.address(), dialer.options);
  const Completion arrival = completions.next_of(Operation::connection_request);
  CHECK_EQ(arrival.user_value, 99);
  auto request = listener.next();
  REQUIRE(request.has_value());
  dialer.options.user_value = 2;
  weft::Endpoint far = request->accept(dialer.options);
  for (int i = 0; i < 2; ++i) {
    const Completion up = completions.next_of(Operation::connect);
    CHECK_EQ(up.status, Status::ok);
    CHECK_EQ(up.user_value, up.endpoint_id == near.id() ? 1 : 2);
  }
  CHECK_NE(near.id(), far.id());
  CHECK_EQ(near.peer_address(), far.local_address());
  // Each end sees only the other's numbers.
  const std::uint32_t count = std::min({100U, near.limits().receive_depth, far.limits().receive_depth});
  const GuardedBuffer buffer(sizeof(std::uint32_t) * 4 * count);
  weft::MemoryRegion region = dialer.context.register_memory(buffer.bytes(), weft::Access::local_write);
  const auto slot = [&](std::uint32_t i) { return region.slice(4 * std::uint64_t{i}, 4); };
  for (std::uint32_t i = 0; i < 2 * count; ++i) {
    buffer.at<std::uint32_t>(std::size_t{4} * i) = i + 1;
    buffer.at<std::uint32_t>(std::size_t{4} * (2 * count + i)) = 0;
    weft::Endpoint& receiver = i < count ? far : near;
    REQUIRE_EQ(receiver.receive(slot(2 * count + i), i), Status::ok);
  }
  for (std::uint32_t i = 0; i < 2 * count; ++i) {
    weft::Endpoint& sender = i < count ? near : far;
    REQUIRE_EQ(post_when_possible(completions, [&] { return sender.send(slot(i), i); }), Status::ok);
  }
  for (std::uint32_t i = 0; i < 2 * count; ++i)
    CHECK_EQ(completions.next_of(Operation::receive).status, Status::ok);
  for (std::uint32_t i = 0; i < 2 * count; ++i) {
    CHECK_EQ(buffer.at<std::uint32_t>(std::size_t{4} * (2 * count + i)), i + 1);
  }
}

CONFORMANCE_TEST(CON, 3, a_failed_attempt_leaves_nothing_behind, alone) {
  Dialer dialer(test);
  (void)dialer.outcome(dialer.closed_address, 3s);
  const Holdings before = holdings_of_this_process();
  for (int i = 0; i < 20; ++i) CHECK_EQ(dialer.outcome(dialer.closed_address, 3s).status, Status::refused);
  Holdings after;
  CHECK(
      eventually(2s, [&] { return (after = holdings_of_this_process()).descriptors <= before.descriptors; }))
      << before.descriptors << " descriptors before, " << after.descriptors
      << " after:" << open_descriptors();
  weft::ListenOptions listen;
  listen.queue = dialer.completions.queue();
  weft::Listener listener = dialer.context.listen(dialer.closed_address, listen);
  weft::Endpoint near = dialer.context.connect(dialer.closed_address, dialer.options);
  weft::Endpoint far = next_request(dialer.completions, listener).accept(dialer.options);
  near.wait_up(patience);
  far.wait_up(patience);
  for (int i = 0; i < 100; ++i) check_ping(dialer.context, near, dialer.completions, far, dialer.completions);
}

}  // namespace
}  // namespace conformance
