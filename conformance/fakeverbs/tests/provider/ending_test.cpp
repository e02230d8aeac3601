// What ends endpoints of the verbs provider though no peer did anything: a device that goes, a port that goes
// down and does not come back, a network that swallows everything. Each endpoint tells it once, with a
// reason.
#include "loop.hpp"

namespace fakeverbs_test {
namespace {

using weft::Completion;
using weft::Operation;
using weft::Status;

// Posts until the plan strikes; returns how many operations were accepted.
std::size_t post_until_ended(Loop& loop) {
  std::size_t accepted = 0;
  const auto give_up = std::chrono::steady_clock::now() + 20s;
  while (std::chrono::steady_clock::now() < give_up) {
    const Status status = loop.near.send(loop.region.slice(0, 64), accepted);
    if (status == Status::not_connected) return accepted;
    if (status == Status::ok) ++accepted;
    (void)loop.far.receive(loop.region.slice(64, 64), 0);
    if (status == Status::again) return accepted;
  }
  ADD_FAILURE() << "nothing struck";
  return accepted;
}

void expect_one_end(Loop& loop, std::size_t accepted, Status cause) {
  const auto near = loop.until(loop.near_queue, Operation::endpoint_ended);
  ASSERT_FALSE(near.empty());
  EXPECT_EQ(near.size(), accepted + 1) << "each accepted operation completes once";
  for (std::size_t i = 0; i + 1 < near.size(); ++i) EXPECT_EQ(near[i].context, i);
  EXPECT_EQ(near.back().status, cause) << to_string(near.back().status);
  const auto far = loop.until(loop.far_queue, Operation::endpoint_ended);
  ASSERT_FALSE(far.empty());
  EXPECT_EQ(far.back().status, cause) << to_string(far.back().status);
  EXPECT_EQ(loop.near.send(loop.region.slice(0, 8), 1), Status::not_connected);
  const auto start = std::chrono::steady_clock::now();
  loop.near = {};
  loop.far = {};
  loop.listener = {};
  loop.context = {};
  EXPECT_LT(std::chrono::steady_clock::now() - start, 10s);
}

TEST(Ending, ADeviceThatGoesEndsItsEndpoints) {
  expect_under_plan("fatal=50 garbage", [] {
    Loop loop;
    expect_one_end(loop, post_until_ended(loop), Status::aborted);
  });
}

TEST(Ending, ADeviceThatGoesWhileTheProgramSleeps) {
  expect_under_plan("fatal=5", [] {
    Loop loop;
    for (std::uint64_t i = 0; i < 5; ++i) (void)loop.near.send(loop.region.slice(0, 64), i);
    expect_one_end(loop, 5, Status::aborted);
  });
}

TEST(Ending, APortThatStaysDownEndsItsEndpoints) {
  expect_under_plan("port-down=20", [] {
    Loop loop;
    const std::size_t accepted = post_until_ended(loop);
    const auto near = loop.until(loop.near_queue, Operation::endpoint_ended);
    ASSERT_FALSE(near.empty());
    EXPECT_EQ(near.size(), accepted + 1);
    EXPECT_TRUE(near.back().status == Status::aborted || near.back().status == Status::peer_lost);
  });
}

TEST(Ending, APortThatComesBackEndsNothing) {
  expect_under_plan("port-down=20:100", [] {
    Loop loop;
    for (std::uint64_t i = 0; i < 100; ++i) {
      while (loop.far.receive(loop.region.slice(64, 64), i) == Status::again) {
        (void)loop.until(loop.far_queue, Operation::receive);
      }
      ASSERT_EQ(loop.near.send(loop.region.slice(0, 64), i), Status::ok);
      const auto sent = loop.until(loop.near_queue, Operation::send);
      ASSERT_EQ(sent.back().status, Status::ok);
      EXPECT_EQ(sent.back().context, i);
    }
    EXPECT_EQ(loop.near.state(), weft::EndpointState::up);
  });
}

TEST(Ending, ANetworkThatSwallowsEverythingIsNoticed) {
  expect_under_plan("lost=20", [] {
    Loop loop;
    expect_one_end(loop, post_until_ended(loop), Status::peer_lost);
  });
}

TEST(Ending, ASilentNetworkIsNoticedByAnIdleEndpoint) {
  expect_under_plan("lost=1", [] {
    Loop loop;  // the first request is the library's own probe
    expect_one_end(loop, 0, Status::peer_lost);
  });
}

// What is left when an attempt to make an endpoint fails for want of the device's memory.
TEST(Ending, ADeviceWithoutMemoryFailsTheNewcomerOnly) {
  expect_under_plan("create-enomem=7", [] {
    Loop loop;
    int failed = 0;
    for (int i = 0; i < 6; ++i) {
      try {
        Loop other;
        EXPECT_EQ(other.near.state(), weft::EndpointState::up);
      } catch (const weft::Error& error) {
        ++failed;
        EXPECT_EQ(error.code(), Status::resource_limit) << error.what();
      }
    }
    EXPECT_EQ(failed, 1);
    ASSERT_EQ(loop.far.receive(loop.region.slice(64, 64), 1), Status::ok);
    ASSERT_EQ(loop.near.send(loop.region.slice(0, 64), 1), Status::ok);
    EXPECT_EQ(loop.until(loop.near_queue, Operation::send).back().status, Status::ok);
  });
}

// Takes entries of the queue until so many of `operation` were there.
void take(Loop& loop, const weft::CompletionQueue& queue, Operation operation, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) (void)loop.until(queue, operation);
}

// Pairs of endpoints that ended are destroyed one after the other, behind the program's back, which takes
// half a second here; a program that keeps their handles and at once makes as many new ones does not meet the
// device's limit.
TEST(Ending, NewEndpointsGetThePairsOfThoseThatEnded) {
  expect_under_plan("queue-pairs=210 slow-destroy=2", [] {
    constexpr std::size_t connections = 100;
    Loop loop;
    std::vector<weft::Endpoint> kept;
    std::vector<weft::Endpoint> started;
    for (int round = 0; round < 3; ++round) {
      for (weft::Endpoint& endpoint : started) endpoint.abort();
      // Both sides of all of them, so that their pairs serve nothing any more.
      take(loop, loop.near_queue, Operation::endpoint_ended, started.size());
      take(loop, loop.far_queue, Operation::endpoint_ended, started.size());
      kept.insert(kept.end(), started.begin(), started.end());
      started.clear();
      const weft::CompletionQueue arrivals = loop.context.create_completion_queue();
      weft::Listener listener = loop.context.listen("127.0.0.1:0", {.queue = arrivals});
      for (std::size_t i = 0; i < connections; ++i)
        started.push_back(loop.context.connect(listener.address(), {.queue = loop.near_queue}));
      for (std::size_t i = 0; i < connections; ++i) {
        (void)loop.until(arrivals, Operation::connection_request);
        kept.push_back(listener.next()->accept({.queue = loop.far_queue}));
      }
      for (weft::Endpoint& endpoint : started) {
        try {
          endpoint.wait_up(30s);
        } catch (const weft::Error& error) {
          FAIL() << "round " << round << ": " << error.what();
        }
      }
      take(loop, loop.far_queue, Operation::connect, connections);
    }
  });
}

// Without any that ended the limit is told as such.
TEST(Ending, ADeviceFullOfLivingPairsSaysSo) {
  expect_under_plan("queue-pairs=4", [] {
    Loop loop;
    const weft::Endpoint near = loop.near;
    const weft::Endpoint far = loop.far;
    loop.connect();
    try {
      loop.context.connect(loop.listener.address(), {.queue = loop.near_queue}).wait_up(10s);
      ADD_FAILURE() << "more pairs than the device has";
    } catch (const weft::Error& error) {
      EXPECT_EQ(error.code(), Status::resource_limit) << error.what();
    }
    EXPECT_EQ(near.state(), weft::EndpointState::up);
    EXPECT_EQ(far.state(), weft::EndpointState::up);
  });
}

}  // namespace
}  // namespace fakeverbs_test
