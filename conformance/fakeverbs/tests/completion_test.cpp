// Completion queues, their events, and overruns.
#include <fcntl.h>
#include <poll.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "verbs_side.hpp"

namespace fakeverbs_test {
namespace {

bool readable(int descriptor, std::chrono::milliseconds time) {
  pollfd waiting{descriptor, POLLIN, 0};
  return ::poll(&waiting, 1, static_cast<int>(time.count())) == 1;
}

void take_event(Side& side, ibv_cq* expected) {
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  ASSERT_EQ(ibv_get_cq_event(side.channel.get(), &queue, &context), 0);
  EXPECT_EQ(queue, expected);
  ibv_ack_cq_events(queue, 1);
}

TEST(Completion, AnArmedQueueTellsOnce) {
  Link link;
  ASSERT_EQ(ibv_req_notify_cq(link.b.receives.get(), 0), 0);
  EXPECT_FALSE(readable(link.b.channel->fd, 10ms));
  for (std::uint64_t id = 0; id < 2; ++id) {
    ASSERT_EQ(link.b.post_receive(id, {link.b.segment(0, 64)}), 0);
    ASSERT_EQ(link.a.send(id, 0, 8), 0);
    EXPECT_COMPLETED(link.a.next(), id, IBV_WC_SUCCESS);
  }
  ASSERT_TRUE(readable(link.b.channel->fd, patience));
  take_event(link.b, link.b.receives.get());
  EXPECT_FALSE(readable(link.b.channel->fd, 20ms)) << "one arming, one event";
}

TEST(Completion, AQueueThatIsNotArmedIsSilent) {
  Link link;
  ASSERT_EQ(link.b.post_receive(1, {link.b.segment(0, 64)}), 0);
  ASSERT_EQ(link.a.send(2, 0, 8), 0);
  EXPECT_COMPLETED(link.a.next(), 2, IBV_WC_SUCCESS);
  EXPECT_FALSE(readable(link.b.channel->fd, 20ms));
}

TEST(Completion, OnlySolicitedOnesWhenAskedForThose) {
  Link link;
  ASSERT_EQ(link.b.post_receive(1, {link.b.segment(0, 64)}), 0);
  ASSERT_EQ(link.b.post_receive(2, {link.b.segment(0, 64)}), 0);
  ASSERT_EQ(ibv_req_notify_cq(link.b.receives.get(), 1), 0);
  ASSERT_EQ(link.a.send(3, 0, 8), 0);
  EXPECT_COMPLETED(link.a.next(), 3, IBV_WC_SUCCESS);
  EXPECT_FALSE(readable(link.b.channel->fd, 20ms));
  ASSERT_EQ(link.a.send(4, 0, 8, IBV_SEND_SOLICITED), 0);
  EXPECT_COMPLETED(link.a.next(), 4, IBV_WC_SUCCESS);
  ASSERT_TRUE(readable(link.b.channel->fd, patience));
  take_event(link.b, link.b.receives.get());
}

TEST(Completion, AnErrorCountsAsSolicited) {
  Link link;
  ASSERT_EQ(link.b.post_receive(1, {link.b.segment(0, 64)}), 0);
  ASSERT_EQ(ibv_req_notify_cq(link.b.receives.get(), 1), 0);
  ASSERT_EQ(link.b.to(IBV_QPS_ERR), 0);
  ASSERT_TRUE(readable(link.b.channel->fd, patience));
  take_event(link.b, link.b.receives.get());
}

TEST(Completion, ANonBlockingChannelSaysThereIsNothing) {
  Side side;
  ASSERT_EQ(::fcntl(side.channel->fd, F_SETFL, O_NONBLOCK), 0);
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  errno = 0;
  EXPECT_EQ(ibv_get_cq_event(side.channel.get(), &queue, &context), -1);
  EXPECT_EQ(errno, EAGAIN);
}

TEST(Completion, ManyQueuesOnOneChannelAllTell) {
  constexpr int count = 40;  // more than a socket may hold by default
  Side side;
  std::vector<QueueHandle> queues;
  std::vector<PairHandle> pairs;
  for (int index = 0; index < count; ++index) {
    queues.emplace_back(ibv_create_cq(side.context.get(), 16, nullptr, side.channel.get(), 0));
    ASSERT_TRUE(queues.back());
    ibv_qp_init_attr attributes{};
    attributes.send_cq = attributes.recv_cq = queues.back().get();
    attributes.cap = {4, 4, 1, 1, 0};
    attributes.qp_type = IBV_QPT_RC;
    pairs.emplace_back(ibv_create_qp(side.domain.get(), &attributes));
    ASSERT_TRUE(pairs.back());
    ibv_qp_attr init{};
    init.qp_state = IBV_QPS_INIT;
    init.port_num = 1;
    ASSERT_EQ(ibv_modify_qp(pairs.back().get(), &init,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
              0);
    ibv_recv_wr request{};
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_recv(pairs.back().get(), &request, &bad), 0);
    ASSERT_EQ(ibv_req_notify_cq(queues.back().get(), 0), 0);
  }
  for (const auto& pair : pairs) {
    ibv_qp_attr error{};
    error.qp_state = IBV_QPS_ERR;
    ASSERT_EQ(ibv_modify_qp(pair.get(), &error, IBV_QP_STATE), 0);
  }
  for (int index = 0; index < count; ++index) {
    ASSERT_TRUE(readable(side.channel->fd, patience)) << index;
    ibv_cq* queue = nullptr;
    void* context = nullptr;
    ASSERT_EQ(ibv_get_cq_event(side.channel.get(), &queue, &context), 0);
    ibv_ack_cq_events(queue, 1);
  }
}

TEST(Completion, DestroyingWaitsForAcknowledgement) {
  Link link;
  ASSERT_EQ(link.b.post_receive(1, {link.b.segment(0, 64)}), 0);
  ASSERT_EQ(ibv_req_notify_cq(link.b.receives.get(), 0), 0);
  ASSERT_EQ(link.a.send(2, 0, 8), 0);
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  ASSERT_EQ(ibv_get_cq_event(link.b.channel.get(), &queue, &context), 0);
  link.b.pair.reset();
  std::atomic<bool> acknowledged{false};
  std::thread later([&] {
    std::this_thread::sleep_for(30ms);
    acknowledged.store(true);
    ibv_ack_cq_events(queue, 1);
  });
  link.b.receives.reset();
  EXPECT_TRUE(acknowledged.load());
  later.join();
}

TEST(Completion, AnOverrunBreaksTheQueueAndItsPairs) {
  // The target's queue is small, and nobody reads it.
  Link link({.send_depth = 64}, {.receive_depth = 64, .entries = 4});
  const int room = link.b.receives->cqe;
  ASSERT_LT(room, 64);
  for (int id = 0; id <= room; ++id) ASSERT_EQ(link.b.post_receive(static_cast<std::uint64_t>(id), {}), 0);
  for (int id = 0; id <= room; ++id) {
    ibv_send_wr request{};
    request.opcode = IBV_WR_SEND;
    ASSERT_EQ(link.a.post(request, {}), 0);
  }
  EXPECT_EQ(link.b.next_event(), IBV_EVENT_CQ_ERR);
}

}  // namespace
}  // namespace fakeverbs_test
