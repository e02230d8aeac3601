// Connecting: private data, what both sides agree on, bursts (CON-2, CON-4, CON-5, CON-6, CON-8).
#include <gtest/gtest.h>

#include <thread>

#include "handshake_sides.hpp"
#include "log_capture.hpp"

namespace weft::test {
namespace {

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

}  // namespace
}  // namespace weft::test
