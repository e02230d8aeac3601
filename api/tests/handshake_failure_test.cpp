// Connecting that fails, and strangers at the door (CON-2, CON-3, CON-6, CON-7).
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <thread>

#include "bootstrap/descriptor.hpp"
#include "bootstrap/wire.hpp"
#include "handshake_sides.hpp"
#include "log_capture.hpp"

namespace weft::test {
namespace {

namespace wire = core::wire;

TEST(Handshake, RefusedUnreachableAndNonsense) {
  Client client;
  Door door;
  ::close(door.socket);
  auto refused = client.connect(door.address());
  client.expect_outcome(
      refused, Status::refused,
      "cannot connect to \"" + door.address() + "\": Connection refused (nobody listens there)");
  auto no_name = client.connect("no-such-host.invalid:7");
  client.expect_outcome(no_name, Status::unreachable, "no-such-host.invalid");
  for (const char* nonsense : {"", "host", "host:", "host:99999", ":7", "[::1:7", "a b:7:8"}) {
    EXPECT_EQ(thrown_by([&] { (void)client.connect(nonsense); }).code, Status::invalid_argument) << nonsense;
  }
}

TEST(Handshake, ASilentPeerTimesOut) {
  Client client;
  Door door;  // the kernel connects, nobody answers
  const auto start = std::chrono::steady_clock::now();
  auto endpoint = client.connect(door.address(), 200ms);
  client.expect_outcome(endpoint, Status::timed_out, "200 ms");
  EXPECT_LT(std::chrono::steady_clock::now() - start, 2s);
}

TEST(Handshake, AnUnansweredArrivalTimesOutAndIsWithdrawn) {
  Server server;
  Client client;
  auto endpoint = client.connect(server.listener.address(), 200ms);
  client.expect_outcome(endpoint, Status::timed_out, "program");
  EXPECT_TRUE(eventually([&] { return drain(server.queue).empty() && !server.listener.next(); }));
}

TEST(Handshake, AcceptAfterThePeerIsGoneSaysSo) {
  Server server;
  auto client = std::make_unique<Client>();
  auto endpoint = client->connect(server.listener.address());
  auto request = server.arrival();
  endpoint.abort();
  // Noticed by now, it is told at once, else by the completion.
  Endpoint accepted;
  const Thrown thrown = thrown_by([&] { accepted = request->accept(with_queue(server.queue)); });
  EXPECT_EQ(thrown.code == Status::ok ? next(server.queue, Operation::connect).status : thrown.code,
            Status::cancelled);
  EXPECT_NE(thrown_by([&] { request->accept(); }).code, Status::ok);
}

TEST(Handshake, GarbageFromAListenerIsAProtocolError) {
  Client client;
  Door door;
  std::thread ssh([&door] {
    Stranger peer(::accept(door.socket, nullptr, nullptr));
    peer.say(bytes_of("SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n"));
    (void)peer.hear();
  });
  auto endpoint = client.connect(door.address());
  client.expect_outcome(endpoint, Status::protocol, "not weft's protocol");
  ssh.join();
  std::thread quitter([&door] { Stranger peer(::accept(door.socket, nullptr, nullptr)); });
  auto second = client.connect(door.address());
  client.expect_outcome(second, Status::protocol, "");
  quitter.join();
}

TEST(Handshake, StrangersAreDroppedAndOthersServed) {
  Server server;
  const std::uint16_t port = server.listener.port();
  Stranger web(port);
  web.say(bytes_of("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
  Stranger silent(port);
  Stranger half(port);
  half.say(bytes_of("WE"));
  Stranger foreign(port);
  wire::Preamble other{.byte_order = wire::host_byte_order(), .kind = 1};
  other.lowest = 8;
  other.highest = 9;
  foreign.say(wire::encode(other));
  Stranger link(port);  // a control connection nobody asked for
  link.say(wire::encode(wire::Preamble{.byte_order = wire::host_byte_order(), .kind = 2}));
  link.say(wire::encode(wire::LinkHello{}));
  Stranger huge(port);
  huge.say(wire::encode(wire::Preamble{.byte_order = wire::host_byte_order(), .kind = 1}));
  huge.say(bytes_of(std::string_view("\xff\xff\xff\x7f\x01\0\0\0", 8)));

  EXPECT_TRUE(web.hear().empty());
  EXPECT_TRUE(link.hear().empty());
  EXPECT_TRUE(huge.hear().empty());
  const auto refusal = foreign.hear();
  ASSERT_GT(refusal.size(), wire::header_size);
  const auto refuse = wire::decode<wire::Refuse>(std::span(refusal).subspan(wire::header_size));
  ASSERT_TRUE(refuse);
  EXPECT_EQ(refuse->status, Status::incompatible);
  EXPECT_SAYS(refuse->text, "8 to 9");

  Client client;
  auto endpoint = client.connect(server.listener.address());
  auto accepted = server.arrival()->accept(with_queue(server.queue));
  endpoint.wait_up(5s);
}

TEST(Handshake, AFullBacklogRefusesExplicitly) {
  Server server({}, 1);
  Client client;
  LogCapture log(LogLevel::warning);
  auto first = client.connect(server.listener.address());
  (void)next(server.queue, Operation::connection_request);
  auto second = client.connect(server.listener.address());
  client.expect_outcome(second, Status::resource_limit, "backlog");
  auto accepted = server.listener.next()->accept(with_queue(server.queue));
  first.wait_up(5s);
}

TEST(Handshake, ClosingTheListenerRejectsWhatWasNotTaken) {
  Server server;
  Client client;
  auto waiting = client.connect(server.listener.address());
  EXPECT_TRUE(eventually([&] { return !server.queue.arm(); }));
  const std::string address = server.listener.address();
  server.listener.close();
  client.expect_outcome(waiting, Status::rejected, "");
  auto late = client.connect(address);
  client.expect_outcome(late, Status::refused, "");
}

TEST(Handshake, FailedAttemptsLeaveNothingBehind) {
  Client client;
  Door door;
  const std::size_t before = core::DescriptorTable::instance().count();
  for (int i = 0; i < 10; ++i) {
    auto endpoint = client.connect(door.address(), 20ms);
    (void)next(client.queue, Operation::connect);
  }
  Door closed;
  ::close(closed.socket);
  for (int i = 0; i < 10; ++i) {
    auto endpoint = client.connect(closed.address());
    EXPECT_EQ(next(client.queue, Operation::connect).status, Status::refused);
  }
  // The queue's own two appear with the first wait.
  EXPECT_TRUE(eventually([&] { return core::DescriptorTable::instance().count() <= before + 2; }));
  EXPECT_TRUE(eventually([&] { return client.open.fake->endpoints.empty(); }));
}

TEST(Handshake, RunningOutOfDescriptorsIsTheNewcomersErrorOnly) {
  Server server;
  Client client;
  Pair pair(server.open.context, client.open.context);
  LogCapture log(LogLevel::warning);
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  // Both sides are this process: leave room for the dialing socket, none for the accepted one.
  const Stranger probe(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  rlimit low = limit;
  low.rlim_cur = static_cast<rlim_t>(probe.socket()) + 2;
  std::vector<int> fillers;
  for (int fd = ::dup(0); fd >= 0 && fd < probe.socket(); fd = ::dup(0)) fillers.push_back(fd);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  auto endpoint = client.connect(server.listener.address(), 2s);
  const Completion outcome = next(client.queue, Operation::connect);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  for (const int fd : fillers) ::close(fd);
  EXPECT_EQ(outcome.status, Status::resource_limit) << to_string(outcome.status) << endpoint.describe_end();
  EXPECT_EQ(pair.client.state(), EndpointState::up);
  auto again = client.connect(server.listener.address(), 5s);
  auto accepted = server.arrival()->accept(with_queue(server.queue));
  again.wait_up(5s);
}

TEST(Handshake, WaitUpThrowsTheOutcome) {
  Client client;
  Door door;
  auto silent = client.connect(door.address(), 10s);
  EXPECT_EQ(thrown_by([&] { silent.wait_up(50ms); }).code, Status::timed_out);
  EXPECT_EQ(silent.state(), EndpointState::connecting) << "the attempt goes on";
  ::close(::accept(door.socket, nullptr, nullptr));
  EXPECT_EQ(thrown_by([&] { silent.wait_up(5s); }).code, Status::protocol);
  EXPECT_TRUE(drain(client.queue).empty()) << "the report was taken back";
  auto closed = client.connect(door.address(), 10s);
  closed.close(1s);
  EXPECT_EQ(thrown_by([&] { closed.wait_up(5s); }).code, Status::cancelled);
}

}  // namespace
}  // namespace weft::test
