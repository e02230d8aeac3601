// Endpoints coming up, carrying messages and ending; handles destroyed in any order.
#include <gtest/gtest.h>

#include <thread>

#include "bootstrap/descriptor.hpp"
#include "expect_error.hpp"
#include "fake_provider.hpp"
#include "pair.hpp"

namespace weft::test {
namespace {

struct Fakes {
  FakeOpen one = open_fake();
  FakeOpen two = open_fake();
  Pair pair{one.context, two.context};
  FakeEndpoint& server() { return *one.fake->endpoint(pair.server.id()); }
  FakeEndpoint& client() { return *two.fake->endpoint(pair.client.id()); }
};

TEST(Lifecycle, ConnectsCarriesAndCloses) {
  Fakes fakes;
  Pair& pair = fakes.pair;
  EXPECT_EQ(pair.client.state(), EndpointState::up);
  EXPECT_EQ(pair.server.peer_address(), pair.client.local_address());
  EXPECT_EQ(pair.client.peer_address(), pair.listener.address());
  EXPECT_TRUE(drain(pair.client_queue).empty()) << "wait_up takes the connect report";

  char buffer[8] = {};
  auto region = fakes.one.context.register_memory(buffer, sizeof buffer, Access::local_write);
  ASSERT_EQ(pair.server.receive(region.whole(), 5), Status::ok);
  ASSERT_EQ(pair.client.send(Segment::inline_bytes("hello", 5), 6, Flags::inline_data), Status::ok);
  EXPECT_EQ(next(pair.client_queue, Operation::send).context, 6U);
  const Completion got = next(pair.server_queue, Operation::receive);
  EXPECT_EQ(got.bytes, 5U);
  EXPECT_STREQ(buffer, "hello");

  pair.client.close(5s);
  EXPECT_EQ(next(pair.client_queue, Operation::endpoint_ended).status, Status::local_close);
  EXPECT_EQ(next(pair.server_queue, Operation::endpoint_ended).status, Status::disconnected);
  EXPECT_TRUE(eventually([&] { return pair.server.state() == EndpointState::ended; }));
  EXPECT_EQ(pair.server.cause(), Status::disconnected);
  EXPECT_EQ(pair.client.cause(), Status::local_close);
  EXPECT_NE(pair.server.describe_end(), "");
  EXPECT_EQ(pair.client.send({}, 0), Status::not_connected);
}

TEST(Lifecycle, AttributesAreTheProvidersAndTheCores) {
  ContextOptions options;
  options.progress_mode = ProgressMode::when_called;
  auto one = open_fake({}, options);
  const Attributes& attributes = one.context.attributes();
  EXPECT_EQ(attributes.provider, "fake");
  EXPECT_EQ(attributes.provider_version, "1.2.3");
  EXPECT_EQ(attributes.progress_mode, ProgressMode::when_called);
  EXPECT_EQ(attributes.max_private_data, 4096U);
  EXPECT_EQ(attributes.limits.max_segments, 4U);
}

TEST(Lifecycle, PeerSeesTheEndAfterTheLastMessage) {
  Fakes fakes;
  Pair& pair = fakes.pair;
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_EQ(pair.client.send({}, i), Status::ok);
  pair.client.close(5s);
  EXPECT_EQ(next(pair.client_queue, Operation::endpoint_ended).status, Status::local_close);
  std::this_thread::sleep_for(20ms);
  EXPECT_TRUE(drain(pair.server_queue).empty());
  EXPECT_EQ(pair.server.cause(), Status::ok);
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_EQ(pair.server.receive({}, i), Status::ok);
  std::vector<Completion> before;
  EXPECT_EQ(next(pair.server_queue, Operation::endpoint_ended, &before).status, Status::disconnected);
  EXPECT_EQ(before.size(), 3U);
}

TEST(Lifecycle, TheLossOfAPathAfterTheCloseTakesNoMessageAway) {
  Fakes fakes;
  Pair& pair = fakes.pair;
  ASSERT_EQ(pair.client.send({}, 1), Status::ok);
  pair.client.close(5s);
  EXPECT_TRUE(eventually([&] { return pair.server.state() == EndpointState::closing; }));
  fakes.server().lose_path();
  std::this_thread::sleep_for(50ms);
  ASSERT_EQ(pair.server.receive({}, 2), Status::ok);
  EXPECT_EQ(next(pair.server_queue, Operation::receive).status, Status::ok);
  EXPECT_EQ(next(pair.server_queue, Operation::endpoint_ended).status, Status::disconnected);
}

TEST(Lifecycle, AClosedPeersLastMessagesAreDroppedOnClose) {
  Fakes fakes;
  Pair& pair = fakes.pair;
  ASSERT_EQ(pair.client.send({}, 1), Status::ok);
  pair.client.close(5s);
  EXPECT_EQ(next(pair.client_queue, Operation::endpoint_ended).status, Status::local_close);
  EXPECT_TRUE(eventually([&] { return pair.server.state() == EndpointState::closing; }));
  pair.server.close(5s);
  EXPECT_EQ(next(pair.server_queue, Operation::endpoint_ended).status, Status::disconnected)
      << "the first cause";
}

TEST(Lifecycle, AbortIsSeenAsAborted) {
  Fakes fakes;
  fakes.pair.client.abort();
  EXPECT_EQ(next(fakes.pair.client_queue, Operation::endpoint_ended).status, Status::local_close);
  EXPECT_EQ(next(fakes.pair.server_queue, Operation::endpoint_ended).status, Status::aborted);
}

TEST(Lifecycle, CloseEndsByItsDeadlineWhenThePeerIsStuck) {
  auto one = open_fake();
  auto two = open_fake({.never_drains = true});
  Pair pair(one.context, two.context);
  pair.client.close(100ms);
  EXPECT_EQ(pair.client.state(), EndpointState::closing);
  EXPECT_EQ(next(pair.client_queue, Operation::endpoint_ended).status, Status::local_close);
  EXPECT_EQ(next(pair.server_queue, Operation::endpoint_ended).status, Status::aborted);
  EXPECT_NE(pair.client.describe_end().find("deadline"), std::string::npos);
}

TEST(Lifecycle, ADefiniteFailureEndsBothSidesWithItsCause) {
  for (const Status cause :
       {Status::truncated, Status::remote_access_error, Status::protocol, Status::aborted}) {
    Fakes fakes;
    fakes.server().fail(cause, 42);
    EXPECT_EQ(next(fakes.pair.server_queue, Operation::endpoint_ended).status, cause);
    EXPECT_EQ(next(fakes.pair.client_queue, Operation::endpoint_ended).status, cause);
    EXPECT_EQ(fakes.client().last_order.detail, 42U);
    EXPECT_EQ(fakes.client().last_order.native_code, 77);
  }
}

TEST(Lifecycle, ABrokenPathWaitsForThePeersWord) {
  Fakes fakes;
  fakes.client().fail(Status::peer_lost);
  std::this_thread::sleep_for(50ms);
  EXPECT_TRUE(drain(fakes.pair.client_queue).empty());
  fakes.server().fail(Status::truncated);
  EXPECT_EQ(next(fakes.pair.client_queue, Operation::endpoint_ended).status, Status::truncated);
  EXPECT_EQ(next(fakes.pair.server_queue, Operation::endpoint_ended).status, Status::truncated);
}

TEST(Lifecycle, ABrokenPathWithoutAWordIsALostPeerOnBothSides) {
  Fakes fakes;
  const auto start = std::chrono::steady_clock::now();
  fakes.client().fail(Status::peer_lost);
  EXPECT_EQ(next(fakes.pair.client_queue, Operation::endpoint_ended).status, Status::peer_lost);
  EXPECT_GE(std::chrono::steady_clock::now() - start, 900ms);
  EXPECT_EQ(next(fakes.pair.server_queue, Operation::endpoint_ended).status, Status::peer_lost);
}

TEST(Lifecycle, OtherEndpointsOfTheSamePeersAreNotDisturbed) {
  Fakes fakes;
  Pair other(fakes.one.context, fakes.two.context);
  fakes.pair.client.abort();
  EXPECT_EQ(next(fakes.pair.server_queue, Operation::endpoint_ended).status, Status::aborted);
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(other.client.state(), EndpointState::up);
  EXPECT_EQ(other.server.state(), EndpointState::up);
  EXPECT_TRUE(drain(other.server_queue).empty());
}

TEST(Lifecycle, ReceivesPostedBeforeItIsUpAreCancelledWhenItDoesNotComeUp) {
  auto one = open_fake();
  auto queue = one.context.create_completion_queue();
  auto server_queue = one.context.create_completion_queue();
  ListenOptions listen;
  listen.queue = server_queue;
  auto listener = one.context.listen("127.0.0.1:0", listen);
  // Stays undecided until the listener rejects it.
  auto endpoint = one.context.connect(listener.address(), with_queue(queue, 9));
  EXPECT_EQ(endpoint.send({}, 0), Status::again);
  ASSERT_EQ(endpoint.receive({}, 3), Status::ok);
  EXPECT_EQ(next(server_queue, Operation::connection_request).status, Status::ok);
  auto request = listener.next();
  ASSERT_TRUE(request);
  request->reject({});
  std::vector<Completion> others;
  const Completion outcome = next(queue, Operation::connect, &others);
  EXPECT_EQ(outcome.status, Status::rejected);
  EXPECT_EQ(outcome.user_value, 9U);
  EXPECT_EQ(outcome.endpoint_id, endpoint.id());
  if (others.empty()) others.push_back(next(queue, Operation::receive));
  EXPECT_EQ(others.at(0).status, Status::cancelled);
  EXPECT_EQ(endpoint.send({}, 0), Status::not_connected);
  std::this_thread::sleep_for(20ms);
  EXPECT_TRUE(drain(queue).empty()) << "no endpoint_ended for what never was up";
}

TEST(Lifecycle, RingsReachThePeersProvider) {
  Fakes fakes;
  fakes.client().ring();
  EXPECT_TRUE(eventually([&] { return fakes.server().rings == 1; }));
}

TEST(Lifecycle, LastHandleClosesAndThePeerIsTold) {
  Fakes fakes;
  fakes.pair.client = {};
  EXPECT_EQ(next(fakes.pair.server_queue, Operation::endpoint_ended).status, Status::disconnected);
  EXPECT_TRUE(drain(fakes.pair.client_queue).empty()) << "its completions are not delivered any more";
}

TEST(Lifecycle, AStuckProviderDelaysNobodyForLong) {
  auto one = open_fake();
  auto two = open_fake({.never_finishes = true});
  const auto start = std::chrono::steady_clock::now();
  {
    Pair pair(one.context, two.context);
    two.context = {};
    pair.client = {};
    EXPECT_LT(std::chrono::steady_clock::now() - start, 2500ms);
    pair.client_queue = {};
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
}

TEST(Lifecycle, HandlesGoInAnyOrderAndNothingLeaks) {
  const int objects_before = fake_objects();
  const std::size_t descriptors_before = core::DescriptorTable::instance().count();
  for (int order = 0; order < 6; ++order) {
    auto fakes = std::make_unique<Fakes>();
    Pair& pair = fakes->pair;
    char memory[8];
    auto region = fakes->one.context.register_memory(memory, sizeof memory, Access::local_write);
    ASSERT_EQ(pair.server.receive(region.whole(), 1), Status::ok);
    if (order == 0) fakes->one.context = {};
    if (order == 1) pair.server_queue = {};
    if (order == 2) pair.listener = {};
    if (order == 3) region = {};
    if (order == 4) fakes->two.context.close();
    if (order == 5) fakes->one.context.close();
    fakes.reset();
  }
  EXPECT_EQ(fake_objects(), objects_before);
  EXPECT_EQ(core::DescriptorTable::instance().count(), descriptors_before);
}

TEST(Lifecycle, ClosingAContextEndsAllAndLeavesTheCompletions) {
  Fakes fakes;
  Pair& pair = fakes.pair;
  auto waiting = fakes.two.context.connect("192.0.2.1:9", with_queue(pair.client_queue));
  const auto start = std::chrono::steady_clock::now();
  fakes.two.context.close();
  EXPECT_LT(std::chrono::steady_clock::now() - start, 2s);
  EXPECT_EQ(waiting.state(), EndpointState::ended);
  EXPECT_EQ(waiting.cause(), Status::cancelled);
  EXPECT_EQ(pair.client.cause(), Status::local_close);
  EXPECT_EQ(drain(pair.client_queue).size(), 2U) << "the cancelled connect, and endpoint_ended";
  std::array<Completion, 1> entry;
  EXPECT_EQ(pair.client_queue.poll(entry).reason(), Polled::Reason::failed);
  EXPECT_EQ(pair.client_queue.wait(entry, -1s).reason(), Polled::Reason::failed);
  EXPECT_EQ(next(pair.server_queue, Operation::endpoint_ended).status, Status::disconnected);
  EXPECT_THROW((void)fakes.two.context.create_completion_queue(), Error);
  EXPECT_THROW((void)fakes.two.context.connect("127.0.0.1:1", with_queue(pair.client_queue)), Error);
}

TEST(Lifecycle, ClosingAContextWakesItsWaiters) {
  auto one = open_fake();
  auto queue = one.context.create_completion_queue();
  std::thread waiter([&] {
    std::array<Completion, 1> entry;
    EXPECT_EQ(queue.wait(entry, -1s).reason(), Polled::Reason::failed);
  });
  std::this_thread::sleep_for(20ms);
  one.context.close();
  waiter.join();
}

TEST(Lifecycle, LastHandleOfARegionEndsItsUsers) {
  Fakes fakes;
  char memory[8];
  auto region = fakes.one.context.register_memory(memory, sizeof memory, Access::local_write);
  fakes.server().use_regions();
  EXPECT_EQ(region.deregister(), Status::busy);
  EXPECT_TRUE(region);
  region = {};
  EXPECT_EQ(next(fakes.pair.server_queue, Operation::endpoint_ended).status, Status::local_close);
  EXPECT_EQ(next(fakes.pair.client_queue, Operation::endpoint_ended).status, Status::aborted);
}

TEST(Lifecycle, WithoutAHelperThingsMoveInsideCalls) {
  ContextOptions options;
  options.progress_mode = ProgressMode::when_called;
  auto one = open_fake({}, options);
  auto two = open_fake({}, options);
  auto queue = one.context.create_completion_queue();
  auto client_queue = two.context.create_completion_queue();
  ListenOptions listen;
  listen.queue = queue;
  auto listener = one.context.listen("127.0.0.1:0", listen);
  auto client = two.context.connect(listener.address(), with_queue(client_queue));
  std::array<Completion, 4> entries;
  Endpoint server;
  bool server_up = false;
  bool client_up = false;
  const auto deadline = std::chrono::steady_clock::now() + 5s;
  while (!(server_up && client_up) && std::chrono::steady_clock::now() < deadline) {
    for (const Completion& c : queue.wait(entries, 10ms)) {
      if (c.operation == Operation::connection_request) server = listener.next()->accept(with_queue(queue));
      if (c.operation == Operation::connect) server_up = c.status == Status::ok;
    }
    for (const Completion& c : client_queue.wait(entries, 10ms)) client_up = c.status == Status::ok;
  }
  EXPECT_TRUE(server_up && client_up);
  client.close(1s);
  EXPECT_EQ(next(client_queue, Operation::endpoint_ended).status, Status::local_close);
  EXPECT_EQ(next(queue, Operation::endpoint_ended).status, Status::disconnected);
}

}  // namespace
}  // namespace weft::test
