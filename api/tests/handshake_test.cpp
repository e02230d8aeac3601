// Connecting: outcomes, private data, bursts, and strangers at the door (CON-1 to CON-8).
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <thread>

#include "bootstrap/descriptor.hpp"
#include "bootstrap/wire.hpp"
#include "expect_error.hpp"
#include "fake_provider.hpp"
#include "log_capture.hpp"
#include "pair.hpp"

namespace weft::test {
namespace {

namespace wire = core::wire;

// A plain TCP peer on loopback.
class Stranger {
 public:
  explicit Stranger(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const sockaddr_in address = loopback(port);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  explicit Stranger(int socket) : socket_(socket) {}
  ~Stranger() { ::close(socket_); }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  static sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }
  void say(std::span<const std::byte> bytes) {
    EXPECT_EQ(::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  // Everything until the peer closes.
  std::vector<std::byte> hear() {
    std::vector<std::byte> all;
    std::byte piece[512];
    for (ssize_t n = 0; (n = ::recv(socket_, piece, sizeof piece, 0)) > 0;)
      all.insert(all.end(), piece, piece + n);
    return all;
  }
  int socket() const { return socket_; }

 private:
  int socket_;
};

// A listening socket that is not weft's.
struct Door {
  int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::uint16_t port = 0;
  Door() {
    sockaddr_in address = Stranger::loopback(0);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(socket, 16), 0);
    EXPECT_EQ(::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port = ntohs(address.sin_port);
  }
  ~Door() { ::close(socket); }
  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port); }
};

struct Server {
  FakeOpen open;
  CompletionQueue queue;
  Listener listener;

  explicit Server(FakeBehaviour behaviour = {}, std::uint32_t backlog = 1024)
      : open(open_fake(std::move(behaviour))), queue(open.context.create_completion_queue()) {
    ListenOptions options;
    options.queue = queue;
    options.user_value = 77;
    options.backlog = backlog;
    listener = open.context.listen("127.0.0.1:0", options);
  }
  std::optional<ConnectionRequest> arrival() {
    EXPECT_EQ(next(queue, Operation::connection_request).user_value, 77U);
    return listener.next();
  }
};

struct Client {
  FakeOpen open;
  CompletionQueue queue;
  explicit Client(FakeBehaviour behaviour = {})
      : open(open_fake(std::move(behaviour))), queue(open.context.create_completion_queue()) {}
  Endpoint connect(const std::string& address, std::chrono::milliseconds timeout = 5s,
                   std::string_view private_data = {}) {
    EndpointOptions options = with_queue(queue, 5);
    options.timeout = timeout;
    options.private_data = bytes_of(private_data);
    return open.context.connect(address, options);
  }
  void expect_outcome(Endpoint& endpoint, Status status, std::string_view text) {
    const Completion outcome = next(queue, Operation::connect);
    EXPECT_EQ(outcome.status, status) << to_string(outcome.status) << ": " << endpoint.describe_end();
    EXPECT_EQ(outcome.endpoint_id, endpoint.id());
    EXPECT_EQ(outcome.user_value, 5U);
    EXPECT_SAYS(endpoint.describe_end(), text);
  }
};

TEST(Handshake, PrivateDataTravelsBothWays) {
  Server server;
  Client client;
  const std::string hello(4096, 'h');
  const std::string welcome(4096, 'w');
  auto endpoint = client.connect(server.listener.address(), 5s, hello);
  auto request = server.arrival();
  ASSERT_TRUE(request);
  EXPECT_EQ(text_of(request->private_data()), hello);
  EXPECT_SAYS(request->peer_address(), "127.0.0.1:");
  EndpointOptions options = with_queue(server.queue);
  options.private_data = bytes_of(welcome);
  auto accepted = request->accept(options);
  endpoint.wait_up(5s);
  EXPECT_EQ(text_of(endpoint.peer_private_data()), welcome);
  EXPECT_THROW(request->reject(), Error) << "answered once";
  const std::string too_long(4097, 'x');
  EXPECT_EQ(thrown_by([&] { (void)client.connect(server.listener.address(), 5s, too_long); }).code,
            Status::invalid_argument);
}

TEST(Handshake, RejectionCarriesItsPrivateData) {
  Server server;
  Client client;
  auto endpoint = client.connect(server.listener.address());
  server.arrival()->reject(bytes_of("no room"));
  client.expect_outcome(endpoint, Status::rejected, "rejected");
  EXPECT_EQ(text_of(endpoint.peer_private_data()), "no room");
}

TEST(Handshake, AnUnansweredRequestIsRejectedByItsLastHandle) {
  Server server;
  Client client;
  auto endpoint = client.connect(server.listener.address());
  { auto request = server.arrival(); }
  client.expect_outcome(endpoint, Status::rejected, "");
}

TEST(Handshake, APreparedEndpointThatGoesAwayRejects) {
  Server server;
  Client client;
  auto endpoint = client.connect(server.listener.address());
  auto request = server.arrival();
  { auto prepared = request->prepare(with_queue(server.queue)); }
  client.expect_outcome(endpoint, Status::rejected, "");
  EXPECT_EQ(thrown_by([&] { request->accept(); }).code, Status::cancelled);
}

TEST(Handshake, PreparedEndpointsTakeReceivesBeforeTheyAreUp) {
  Server server;
  Client client;
  auto endpoint = client.connect(server.listener.address());
  auto request = server.arrival();
  auto prepared = request->prepare(with_queue(server.queue));
  EXPECT_EQ(prepared.state(), EndpointState::connecting);
  ASSERT_EQ(prepared.receive({}, 4), Status::ok);
  EXPECT_EQ(prepared.send({}, 4), Status::again);
  request->accept();
  endpoint.wait_up(5s);
  ASSERT_EQ(endpoint.send({}, 1), Status::ok);
  EXPECT_EQ(next(server.queue, Operation::receive).context, 4U);
}

TEST(Handshake, NegotiatesTheSmallerLimitsAndTheHighestCommonProtocol) {
  Server server({.protocol = {2, 5}});
  Client client({.protocol = {1, 3}});
  EndpointOptions options = with_queue(client.queue);
  options.send_depth = 7;
  auto endpoint = client.open.context.connect(server.listener.address(), options);
  auto accepted = server.arrival()->accept(with_queue(server.queue));
  endpoint.wait_up(5s);
  accepted.wait_up(5s);
  EXPECT_EQ(accepted.limits().send_depth, 7U);
  EXPECT_EQ(endpoint.limits().send_depth, 7U);
  EXPECT_EQ(client.open.fake->endpoint(endpoint.id())->peer_parameters.protocol, 3);
  EXPECT_EQ(server.open.fake->endpoint(accepted.id())->peer_parameters.protocol, 3);
  EXPECT_TRUE(client.open.fake->endpoint(endpoint.id())->peer_parameters.initiator);
  EXPECT_EQ(server.open.fake->endpoint(accepted.id())->peer_parameters.peer_id, endpoint.id());
}

TEST(Handshake, UnlikeProvidersFailOnBothSidesNamingBoth) {
  Server server({.name = "first"});
  Client client({.name = "second"});
  LogCapture log(LogLevel::warning);
  auto endpoint = client.connect(server.listener.address());
  client.expect_outcome(endpoint, Status::incompatible, "\"second\"");
  EXPECT_SAYS(endpoint.describe_end(), "\"first\"");
  EXPECT_FALSE(log.warnings("\"second\"").empty());
}

TEST(Handshake, ProtocolsWithoutACommonVersionFail) {
  Server server({.protocol = {4, 5}});
  Client client({.protocol = {1, 3}});
  LogCapture log(LogLevel::warning);
  auto endpoint = client.connect(server.listener.address());
  client.expect_outcome(endpoint, Status::incompatible, "4 to 5");
  EXPECT_SAYS(endpoint.describe_end(), "1 to 3");
}

TEST(Handshake, AProviderThatIsReadyLaterIsWaitedFor) {
  Server server({.establishes_later = true});
  Client client({.establishes_later = true});
  auto endpoint = client.connect(server.listener.address());
  auto accepted = server.arrival()->accept(with_queue(server.queue));
  endpoint.wait_up(5s);
  accepted.wait_up(5s);
}

TEST(Handshake, AProviderThatCannotMakeItsPathFailsBothSides) {
  Server server;
  Client client({.establish_error = Status::unreachable});
  auto endpoint = client.connect(server.listener.address());
  auto accepted = server.arrival()->accept(with_queue(server.queue));
  client.expect_outcome(endpoint, Status::unreachable, "made to fail");
  EXPECT_EQ(next(server.queue, Operation::connect).status, Status::cancelled);
  EXPECT_EQ(accepted.state(), EndpointState::ended);
}

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

TEST(Handshake, SixtyFourAtOnceAgainstASlowAcceptor) {
  Server server;
  Client client;
  std::vector<Endpoint> endpoints;
  for (int i = 0; i < 64; ++i) endpoints.push_back(client.connect(server.listener.address(), 10s));
  std::this_thread::sleep_for(200ms);
  std::vector<Endpoint> accepted;
  for (int i = 0; i < 64; ++i) {
    auto request = server.arrival();
    ASSERT_TRUE(request);
    accepted.push_back(request->accept(with_queue(server.queue)));
    std::this_thread::sleep_for(2ms);
  }
  for (auto& endpoint : endpoints) endpoint.wait_up(10s);
  for (auto& endpoint : accepted) endpoint.wait_up(10s);
}

TEST(Handshake, OneThreadConnectsToItself) {
  Server server;
  auto client = server.open.context.connect(server.listener.address(), with_queue(server.queue, 1));
  Endpoint accepted;
  int up = 0;
  std::array<Completion, 4> entries;
  const auto deadline = std::chrono::steady_clock::now() + 5s;
  while (up < 2 && std::chrono::steady_clock::now() < deadline) {
    for (const Completion& c : server.queue.wait(entries, 1s)) {
      if (c.operation == Operation::connection_request)
        accepted = server.listener.next()->accept(with_queue(server.queue, 2));
      if (c.operation == Operation::connect && c.status == Status::ok) ++up;
    }
  }
  EXPECT_EQ(up, 2);
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
