// Paths between two workers, and what peers can do to them. Lanes that wire up through a listener are tried
// over UCX's TCP, which listens as RDMA devices do.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "sides.hpp"
#include "worker.hpp"

namespace weft::ucx {
namespace {

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
