// Paths between two workers, and what peers can do to them. Lanes that wire up through a listener are tried
// over UCX's TCP, which listens as RDMA devices do.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <array>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "ucx_context.hpp"
#include "ucx_endpoint.hpp"
#include "ucx_queue.hpp"
#include "worker.hpp"

namespace weft::ucx {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

class Host final : public provider::Host {
 public:
  void log(LogLevel /*level*/, std::string_view /*line*/) noexcept override {}
  [[nodiscard]] bool logs(LogLevel /*level*/) const noexcept override { return false; }
  [[nodiscard]] std::optional<std::string> variable(std::string_view /*name*/) const override { return {}; }
  void random_bytes(std::span<std::byte> out) const override {
    static std::random_device random;
    for (std::byte& byte : out) byte = static_cast<std::byte>(random());
  }
};

class ContextEvents final : public provider::ContextEvents {
 public:
  void request_service() noexcept override {}
};

class QueueEvents final : public provider::QueueEvents {
 public:
  void readable() noexcept override {}
};

class Events final : public provider::EndpointEvents {
 public:
  void failed(Status cause, std::uint64_t /*detail*/, std::int32_t /*native*/,
              std::string_view text) noexcept override {
    failure = cause;
    what = text;
  }
  void established() noexcept override { is_established = true; }
  void ring_peer() noexcept override {}
  void drained(std::uint64_t /*messages*/) noexcept override {}
  void finished() noexcept override { is_finished = true; }

  Status failure = Status::ok;
  std::string what;
  bool is_established = false;
  bool is_finished = false;
};

sockaddr_in loopback() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}
std::span<const std::byte> bytes_of(const sockaddr_in& address) {
  return {reinterpret_cast<const std::byte*>(&address), sizeof address};
}

const Lanes& listening_tcp() {
  static const Lanes lanes = [] {
    Lanes made = lanes_named("tcp");
    made.wire_up = WireUp::listener;
    return made;
  }();
  return lanes;
}

Library library_over_tcp(Host& host, WireUp wire_up) {
  Library library = open_library(host, lanes_named("tcp"), "lo");
  if (wire_up == WireUp::address) return library;
  library.lanes = &listening_tcp();
  library.rdma.name = "lo";
  library.rdma.address = mapped(bytes_of(loopback()));
  return library;
}

// A context of one queue.
struct Side {
  explicit Side(WireUp wire_up, std::chrono::milliseconds peer_timeout = 10s)
      : context(host, request(peer_timeout), library_over_tcp(host, wire_up)),
        queue_holder(context.create_completion_queue(64, queue_events)),
        queue(static_cast<UcxQueue&>(*queue_holder)) {}
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  provider::OpenRequest request(std::chrono::milliseconds peer_timeout) {
    provider::OpenRequest made;
    made.peer_timeout = peer_timeout;
    made.progress_mode = ProgressMode::when_called;
    made.events = &events;
    return made;
  }
  std::vector<Completion> poll() {
    std::array<Completion, 16> room{};
    const std::size_t count = queue_holder->poll(room.data(), room.size());
    return {room.begin(), room.begin() + static_cast<std::ptrdiff_t>(count)};
  }

  Host host;
  ContextEvents events;
  QueueEvents queue_events;
  UcxContext context;
  std::unique_ptr<provider::CompletionQueue> queue_holder;
  UcxQueue& queue;
};

// One end of a connection whose control connection is this test.
struct End {
  explicit End(Side& on) : side(on) {
    provider::EndpointRequest request;
    request.id = 1;
    request.send_queue = request.receive_queue = on.queue_holder.get();
    request.send_depth = request.receive_depth = 8;
    request.max_inline = 32;
    request.events = &events;
    endpoint = on.context.prepare_endpoint(request);
    const sockaddr_in here = loopback();
    blob = endpoint->blob({bytes_of(here), bytes_of(here)});
  }
  End(const End&) = delete;
  End& operator=(const End&) = delete;
  ~End() {
    if (begun) {
      endpoint->end({});
      for (int i = 0; i < 1000 && !events.is_finished; ++i) static_cast<void>(side.poll());
    }
    endpoint->silence();
    endpoint.reset();
  }

  bool establish(const End& peer, bool initiator) {
    const sockaddr_in here = loopback();
    provider::PeerParameters parameters;
    parameters.protocol = 1;
    parameters.path = {bytes_of(here), bytes_of(here)};
    parameters.blob = peer.blob;
    parameters.limits = peer.endpoint->limits();
    parameters.initiator = initiator;
    begun = true;
    return events.is_established = endpoint->establish(parameters);
  }

  Side& side;
  Events events;
  std::unique_ptr<provider::Endpoint> endpoint;
  std::vector<std::byte> blob;
  bool begun = false;
};

template <class Condition>
bool eventually(std::initializer_list<Side*> sides, Condition condition, Clock::duration limit = 20s) {
  for (const auto end = Clock::now() + limit; Clock::now() < end;) {
    if (condition()) return true;
    for (Side* side : sides) static_cast<void>(side->poll());
    std::this_thread::sleep_for(1ms);
  }
  return condition();
}

// What connects to the queue's listener, and says that it is the worker of this number.
ucp_ep_h visit(const Worker& worker, const UcxQueue& host) {
  sockaddr_in to = loopback();
  to.sin_port = host.meeting_place().port;
  ucp_ep_params_t parameters{};
  parameters.field_mask =
      UCP_EP_PARAM_FIELD_SOCK_ADDR | UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
  parameters.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER | UCP_EP_PARAMS_FLAGS_SEND_CLIENT_ID;
  parameters.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  parameters.sockaddr.addr = reinterpret_cast<const sockaddr*>(&to);
  parameters.sockaddr.addrlen = sizeof to;
  ucp_ep_h endpoint = nullptr;
  EXPECT_EQ(ucp_ep_create(worker.handle(), &parameters, &endpoint), UCS_OK);
  return endpoint;
}

TEST(Paths, OneWhoIsAwaitedConnects) {
  Side near(WireUp::listener);
  Side far(WireUp::listener);
  End waits(near);
  End connects(far);
  EXPECT_TRUE(waits.establish(connects, true));
  EXPECT_FALSE(connects.establish(waits, false));
  EXPECT_TRUE(eventually({&near, &far}, [&] { return connects.events.is_established; }));
  waits.endpoint->go_up();
  connects.endpoint->go_up();
  static_cast<void>(eventually(
      {&near, &far}, [] { return false; }, 100ms));
  EXPECT_EQ(waits.events.failure, Status::ok) << waits.events.what;
  EXPECT_EQ(connects.events.failure, Status::ok) << connects.events.what;
}

TEST(Paths, OneWhoSaysThatItIsThereAndNeverConnectsIsLost) {
  Side near(WireUp::listener, 300ms);
  Side far(WireUp::listener);
  End waits(near);
  const End liar(far);
  EXPECT_TRUE(waits.establish(liar, true));
  EXPECT_FALSE(eventually(
      {&near}, [&] { return waits.events.failure != Status::ok; }, 1s))
      << "before it is up the core's own deadline counts";
  waits.endpoint->go_up();
  EXPECT_TRUE(eventually({&near}, [&] { return waits.events.failure != Status::ok; }));
  EXPECT_EQ(waits.events.failure, Status::peer_lost) << waits.events.what;
}

// The visitor of an attempt that was given up, before the next one meets it or right after.
void pass_over_a_visitor(bool gone_before) {
  Side near(WireUp::listener);
  Side far(WireUp::listener);
  Worker earlier("tcp", "lo", far.queue.meeting_place().number);
  const ucp_ep_h visitor = visit(earlier, near.queue);
  ASSERT_TRUE(eventually({&near}, [&] {
    earlier.progress();
    return near.queue.has_visitors();
  }));
  if (gone_before) earlier.close(visitor);
  End waits(near);
  End connects(far);
  EXPECT_TRUE(waits.establish(connects, true));
  EXPECT_FALSE(near.queue.has_visitors()) << "it was met";
  if (!gone_before) earlier.close(visitor);
  EXPECT_FALSE(eventually(
      {&near}, [&] { return waits.events.failure != Status::ok; }, 300ms))
      << waits.events.what;
  EXPECT_FALSE(connects.establish(waits, false));
  EXPECT_TRUE(eventually({&near, &far}, [&] { return connects.events.is_established; }))
      << connects.events.what;
  waits.endpoint->go_up();
  connects.endpoint->go_up();
  EXPECT_FALSE(eventually(
      {&near, &far}, [&] { return waits.events.failure != Status::ok; }, 100ms))
      << waits.events.what;
  EXPECT_EQ(connects.events.failure, Status::ok) << connects.events.what;
}

TEST(Paths, AVisitorThatIsGoneIsPassedOver) { pass_over_a_visitor(true); }

TEST(Paths, AVisitorThatGoesIsPassedOver) { pass_over_a_visitor(false); }

// As a peer does that was told a wrong number, for a connection of its own (SEC-1).
TEST(Paths, AWorkerThatConnectsOnceMoreHarmsNobodyWhoIsUp) {
  Side near(WireUp::listener);
  Side far(WireUp::listener);
  End waits(near);
  End connects(far);
  EXPECT_TRUE(waits.establish(connects, true));
  EXPECT_FALSE(connects.establish(waits, false));
  ASSERT_TRUE(eventually({&near, &far}, [&] { return connects.events.is_established; }));
  waits.endpoint->go_up();
  connects.endpoint->go_up();
  Worker again("tcp", "lo", far.queue.meeting_place().number);
  End late(near);
  End early(far);
  EXPECT_TRUE(late.establish(early, true));  // on the same path, not up yet
  const ucp_ep_h visitor = visit(again, near.queue);
  EXPECT_TRUE(eventually({&near, &far}, [&] {
    again.progress();
    return near.queue.path_count() == 2;
  })) << "the visitor is for the one that is not up yet";
  EXPECT_FALSE(eventually(
      {&near, &far},
      [&] {
        again.progress();
        return waits.events.failure != Status::ok || connects.events.failure != Status::ok;
      },
      300ms))
      << waits.events.what << connects.events.what;
  again.close(visitor);
  EXPECT_FALSE(eventually(
      {&near, &far},
      [&] { return waits.events.failure != Status::ok || connects.events.failure != Status::ok; }, 300ms))
      << waits.events.what << connects.events.what;
}

TEST(Paths, ThoseThatNobodyUsesAreBounded) {
  constexpr std::size_t most = 64;
  Side near(WireUp::address);
  std::vector<std::unique_ptr<Side>> others;
  for (std::size_t i = 0; i < most + 20; ++i) {
    Side& far = *others.emplace_back(std::make_unique<Side>(WireUp::address));
    End one(near);
    End other(far);
    static_cast<void>(one.establish(other, true));
    static_cast<void>(other.establish(one, false));
    ASSERT_TRUE(
        eventually({&near, &far}, [&] { return one.events.is_established && other.events.is_established; }))
        << one.events.what << other.events.what;
  }
  static_cast<void>(eventually(
      {&near}, [] { return false; }, 50ms));
  EXPECT_LE(near.queue.path_count(), most);
  EXPECT_GE(near.queue.path_count(), most / 2) << "they are kept for what is to come";
}

}  // namespace
}  // namespace weft::ucx
