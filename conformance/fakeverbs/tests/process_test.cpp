// Between two processes: everything again that differs there, and what becomes of a peer that is stopped or
// killed.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <thread>

#include "peer_process.hpp"
#include "verbs_side.hpp"

namespace fakeverbs_test {
namespace {

// Exchanges addresses and connects; the last word means both ends are up.
Address meet(Side& side, Wire& wire, const ConnectOptions& connecting = {}) {
  wire.put(side.address());
  const auto peer = wire.get<Address>();
  side.connect(peer, connecting);
  wire.put(char{'u'});
  EXPECT_EQ(wire.get<char>(), 'u');
  return peer;
}

// Receives may be posted from INIT on.
void post_receives(Side& side, std::uint64_t count, std::uint32_t length) {
  ASSERT_EQ(side.to_init(), 0);
  for (std::uint64_t id = 0; id < count; ++id) ASSERT_EQ(side.post_receive(id, {side.segment(0, length)}), 0);
}

constexpr ConnectOptions slow_to_give_up{.timeout = 14, .retries = 6};

TEST(Processes, MessagesInBothDirections) {
  constexpr std::uint64_t rounds = 300;
  PeerProcess peer([](Wire& wire) {
    Side side;
    post_receives(side, 1, 4096);
    static_cast<void>(meet(side, wire));
    for (std::uint64_t round = 0; round < rounds; ++round) {
      const auto received = side.next_received();
      EXPECT_COMPLETED(received, round, IBV_WC_SUCCESS);
      EXPECT_TRUE(side.holds(0, received->byte_len, static_cast<int>(round)));
      ASSERT_EQ(side.send(round, 0, received->byte_len), 0);
      EXPECT_COMPLETED(side.next(), round, IBV_WC_SUCCESS);
      ASSERT_EQ(side.post_receive(round + 1, {side.segment(0, 4096)}), 0);
    }
    wire.put(char{'d'});
  });
  Side side;
  static_cast<void>(meet(side, peer.wire()));
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const auto length = static_cast<std::uint32_t>(1 + round * 13 % 4096);
    side.fill(0, length, static_cast<int>(round));
    ASSERT_EQ(side.post_receive(round, {side.segment(8192, 4096)}), 0);
    ASSERT_EQ(side.send(round, 0, length), 0);
    EXPECT_COMPLETED(side.next(), round, IBV_WC_SUCCESS);
    const auto received = side.next_received();
    EXPECT_COMPLETED(received, round, IBV_WC_SUCCESS);
    EXPECT_EQ(received->byte_len, length);
    EXPECT_TRUE(side.holds(8192, length, static_cast<int>(round)));
  }
  EXPECT_EQ(peer.wire().get<char>(), 'd');
  EXPECT_EQ(peer.wait(), 0);
}

TEST(Processes, OneSidedOperationsWhileTheTargetSleeps) {
  PeerProcess peer([](Wire& wire) {
    Side side;
    side.fill(4096, 1000, 5);
    static_cast<void>(meet(side, wire));
    EXPECT_EQ(wire.get<char>(), 'd');  // no verbs call until the other side is done
    EXPECT_TRUE(side.holds(0, 1000, 4));
    std::uint64_t word = 0;
    std::memcpy(&word, side.at(8192), sizeof word);
    EXPECT_EQ(word, 7u);
  });
  Side side;
  const auto target = meet(side, peer.wire());
  side.fill(0, 1000, 4);
  ASSERT_EQ(side.write(1, 0, 1000, target, 0), 0);
  EXPECT_COMPLETED(side.next(), 1, IBV_WC_SUCCESS);
  ASSERT_EQ(side.read(2, 2048, 1000, target, 4096), 0);
  EXPECT_COMPLETED(side.next(), 2, IBV_WC_SUCCESS);
  EXPECT_TRUE(side.holds(2048, 1000, 5));
  ibv_send_wr request{};
  request.wr_id = 3;
  request.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.atomic = {target.memory + 8192, 7, 0, target.key};
  ASSERT_EQ(side.post(request, {side.segment(0, 8)}), 0);
  EXPECT_COMPLETED(side.next(), 3, IBV_WC_SUCCESS);
  peer.wire().put(char{'d'});
  EXPECT_EQ(peer.wait(), 0);
}

TEST(Processes, AWaitingSendGoesWhenTheReceiveComes) {
  PeerProcess peer([](Wire& wire) {
    Side side;
    static_cast<void>(meet(side, wire));
    EXPECT_EQ(wire.get<char>(), 'g');
    ASSERT_EQ(side.post_receive(1, {side.segment(0, 64)}), 0);
    EXPECT_COMPLETED(side.next_received(), 1, IBV_WC_SUCCESS);
    EXPECT_EQ(wire.get<char>(), 'd');
  });
  Side side;
  static_cast<void>(meet(side, peer.wire()));
  ASSERT_EQ(side.send(9, 0, 64), 0);
  EXPECT_FALSE(side.next(20ms).has_value());
  peer.wire().put(char{'g'});
  EXPECT_COMPLETED(side.next(), 9, IBV_WC_SUCCESS);
  peer.wire().put(char{'d'});
  EXPECT_EQ(peer.wait(), 0);
}

TEST(Processes, ASleepingReceiverIsWoken) {
  PeerProcess peer([](Wire& wire) {
    Side side;
    post_receives(side, 1, 64);
    ASSERT_EQ(ibv_req_notify_cq(side.receives.get(), 0), 0);
    static_cast<void>(meet(side, wire));
    ibv_cq* queue = nullptr;
    void* context = nullptr;
    ASSERT_EQ(ibv_get_cq_event(side.channel.get(), &queue, &context), 0);
    EXPECT_EQ(queue, side.receives.get());
    ibv_ack_cq_events(queue, 1);
    EXPECT_COMPLETED(side.next_received(), 0, IBV_WC_SUCCESS);
  });
  Side side;
  static_cast<void>(meet(side, peer.wire()));
  std::this_thread::sleep_for(20ms);
  ASSERT_EQ(side.send(9, 0, 64), 0);
  EXPECT_COMPLETED(side.next(), 9, IBV_WC_SUCCESS);
  EXPECT_EQ(peer.wait(), 0);
}

TEST(Processes, AStoppedPeerStillAnswers) {
  PeerProcess peer([](Wire& wire) {
    Side side;
    post_receives(side, 4, 64);
    static_cast<void>(meet(side, wire));
    EXPECT_EQ(wire.get<char>(), 'd');
    for (std::uint64_t id = 0; id < 4; ++id) EXPECT_COMPLETED(side.next_received(), id, IBV_WC_SUCCESS);
    EXPECT_TRUE(side.holds(4096, 64, 3));
  });
  Side side;
  const auto target = meet(side, peer.wire(), slow_to_give_up);
  peer.signal(SIGSTOP);
  std::this_thread::sleep_for(20ms);
  side.fill(0, 64, 3);
  for (std::uint64_t id = 0; id < 4; ++id) {
    ASSERT_EQ(side.send(id, 0, 64), 0);
    EXPECT_COMPLETED(side.next(), id, IBV_WC_SUCCESS);
  }
  ASSERT_EQ(side.write(10, 0, 64, target, 4096), 0);
  EXPECT_COMPLETED(side.next(), 10, IBV_WC_SUCCESS);
  peer.signal(SIGCONT);
  peer.wire().put(char{'d'});
  EXPECT_EQ(peer.wait(), 0);
}

TEST(Processes, AKilledPeerIsNoticedByTheNextRequest) {
  PeerProcess peer([](Wire& wire) {
    Side side;
    post_receives(side, 1, 64);
    static_cast<void>(meet(side, wire));
    static_cast<void>(wire.get<char>());
  });
  Side side;
  static_cast<void>(meet(side, peer.wire()));
  peer.signal(SIGKILL);
  EXPECT_EQ(peer.wait(), 128 + SIGKILL);
  ibv_send_wr probe{};  // nothing, to nowhere: the usual question whether the peer still lives
  probe.wr_id = 5;
  probe.opcode = IBV_WR_RDMA_WRITE;
  probe.send_flags = IBV_SEND_SIGNALED;
  ASSERT_EQ(side.post(probe, {}), 0);
  ASSERT_EQ(side.send(6, 0, 64), 0);
  EXPECT_COMPLETED(side.next(), 5, IBV_WC_RETRY_EXC_ERR);
  EXPECT_COMPLETED(side.next(), 6, IBV_WC_WR_FLUSH_ERR);
}

TEST(Processes, ASendToAKilledPeerFails) {
  PeerProcess peer([](Wire& wire) {
    Side side;
    post_receives(side, 1, 64);
    static_cast<void>(meet(side, wire));
    static_cast<void>(wire.get<char>());
  });
  Side side;
  static_cast<void>(meet(side, peer.wire()));
  peer.signal(SIGKILL);
  EXPECT_EQ(peer.wait(), 128 + SIGKILL);
  ASSERT_EQ(side.send(6, 0, 64), 0);
  EXPECT_COMPLETED(side.next(), 6, IBV_WC_RETRY_EXC_ERR);
}

TEST(Processes, APeerKilledUnderLoadLeavesTheQueueUsable) {
  PeerProcess peer([](Wire& wire) {
    Side side({.send_depth = 128});
    static_cast<void>(meet(side, wire));
    ibv_send_wr request{};
    request.opcode = IBV_WR_SEND;
    for (std::uint64_t count = 0;; ++count) {
      request.send_flags = count % 16 == 15 ? unsigned{IBV_SEND_SIGNALED} : 0u;
      if (side.post(request, {side.segment(0, 256)}) != 0) --count;
      ibv_wc entry{};
      static_cast<void>(ibv_poll_cq(side.sends.get(), 1, &entry));
    }
  });
  Side side;
  post_receives(side, 32, 256);
  static_cast<void>(meet(side, peer.wire()));
  for (std::uint64_t id = 0; id < 2000; ++id) {
    EXPECT_COMPLETED(side.next_received(), id, IBV_WC_SUCCESS);
    ASSERT_EQ(side.post_receive(id + 32, {side.segment(0, 256)}), 0);
  }
  peer.signal(SIGKILL);
  EXPECT_EQ(peer.wait(), 128 + SIGKILL);
  ASSERT_EQ(side.to(IBV_QPS_ERR), 0);
  std::uint64_t expected = 2000;
  for (int count = 0; count < 32; ++count) {
    const auto entry = side.next_received();
    ASSERT_TRUE(entry.has_value()) << expected;
    EXPECT_EQ(entry->wr_id, expected++);
  }
}

TEST(Processes, RequestsThatBreakThePeerTellIt) {
  PeerProcess peer([](Wire& wire) {
    Side side;
    post_receives(side, 1, 64);
    static_cast<void>(meet(side, wire));
    if (is_fake(side.context.get())) {
      EXPECT_EQ(side.next_event(), IBV_EVENT_QP_ACCESS_ERR);
    }
    EXPECT_COMPLETED(side.next_received(), 0, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(side.state(), IBV_QPS_ERR);
  });
  Side side;
  auto target = meet(side, peer.wire());
  ASSERT_EQ(side.write(1, 0, 64, target, side.memory.size()), 0);
  EXPECT_COMPLETED(side.next(), 1, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(peer.wait(), 0);
}

TEST(Processes, AForkedChildOpensItsOwn) {
  Side parent;
  PeerProcess child([](Wire&) {
    Link link;
    ASSERT_EQ(link.b.post_receive(1, {link.b.segment(0, 64)}), 0);
    ASSERT_EQ(link.a.send(2, 0, 64), 0);
    EXPECT_COMPLETED(link.a.next(), 2, IBV_WC_SUCCESS);
  });
  EXPECT_EQ(child.wait(), 0);
  // And the parent's is as it was.
  EXPECT_EQ(parent.to_init(), 0);
}

}  // namespace
}  // namespace fakeverbs_test
