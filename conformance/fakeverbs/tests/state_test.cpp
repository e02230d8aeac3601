// The states of a queue pair.
#include <cerrno>

#include "verbs_side.hpp"

namespace fakeverbs_test {
namespace {

TEST(State, StepsInOrder) {
  Side a;
  Side b;
  EXPECT_EQ(a.state(), IBV_QPS_RESET);
  EXPECT_EQ(a.to_ready_to_send(), EINVAL) << "from RESET";
  EXPECT_EQ(a.to_ready_to_receive(b.address()), EINVAL) << "from RESET";
  EXPECT_EQ(a.to_init(), 0);
  EXPECT_EQ(a.state(), IBV_QPS_INIT);
  EXPECT_EQ(a.to_ready_to_send(), EINVAL) << "from INIT";
  EXPECT_EQ(a.to_ready_to_receive(b.address()), 0);
  EXPECT_EQ(a.to_init(), EINVAL) << "from RTR";
  EXPECT_EQ(a.to_ready_to_send(), 0);
  EXPECT_EQ(a.state(), IBV_QPS_RTS);
}

TEST(State, MissingAttributesAreRefused) {
  Side a;
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = 1;
  EXPECT_EQ(ibv_modify_qp(a.pair.get(), &attributes, IBV_QP_STATE | IBV_QP_PORT), EINVAL);
  attributes.port_num = 9;
  EXPECT_EQ(ibv_modify_qp(a.pair.get(), &attributes,
                          IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS),
            EINVAL);
  EXPECT_EQ(a.state(), IBV_QPS_RESET);
}

TEST(State, MoreReadsThanTheDeviceHasAreRefused) {
  Side a;
  Side b;
  ibv_device_attr limits{};
  ASSERT_EQ(ibv_query_device(a.context.get(), &limits), 0);
  if (!is_fake(a.context.get())) return;  // Soft-RoCE takes any number
  ASSERT_EQ(a.to_init(), 0);
  const ConnectOptions many{.reads = static_cast<std::uint8_t>(limits.max_qp_rd_atom + 1)};
  EXPECT_EQ(a.to_ready_to_receive(b.address(), many), EINVAL);
}

TEST(State, SendsArePostedOnlyWhenReady) {
  Side a;
  Side b;
  EXPECT_EQ(a.send(1, 0, 8), EINVAL);
  ASSERT_EQ(a.to_init(), 0);
  EXPECT_EQ(a.send(1, 0, 8), EINVAL);
  EXPECT_EQ(a.post_receive(2, {a.segment(0, 8)}), 0);
  ASSERT_EQ(a.to_ready_to_receive(b.address()), 0);
  EXPECT_EQ(a.send(1, 0, 8), EINVAL);
}

TEST(State, QueryTellsWhatWasSet) {
  Link link(
      ConnectOptions{.timeout = 14, .retries = 5, .receiver_retries = 6, .receiver_timer = 12, .reads = 2});
  ibv_qp_attr attributes{};
  ibv_qp_init_attr initial{};
  ASSERT_EQ(ibv_query_qp(link.a.pair.get(), &attributes,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                             IBV_QP_MIN_RNR_TIMER | IBV_QP_DEST_QPN | IBV_QP_PATH_MTU | IBV_QP_CAP,
                         &initial),
            0);
  EXPECT_EQ(attributes.timeout, 14);
  EXPECT_EQ(attributes.retry_cnt, 5);
  EXPECT_EQ(attributes.rnr_retry, 6);
  EXPECT_EQ(attributes.min_rnr_timer, 12);
  EXPECT_EQ(attributes.dest_qp_num, link.b.pair->qp_num);
  EXPECT_EQ(attributes.path_mtu, IBV_MTU_1024);
  EXPECT_GE(initial.cap.max_send_wr, 64u);
  EXPECT_GE(initial.cap.max_inline_data, 64u);
}

TEST(State, ErrorFlushesBothQueuesInOrder) {
  Link link;
  // No receive at the peer, so the sends wait; every second one asks for no completion.
  for (std::uint64_t id = 0; id < 8; ++id) {
    ibv_send_wr request{};
    request.wr_id = id;
    request.opcode = IBV_WR_SEND;
    request.send_flags = id % 2 == 0 ? unsigned{IBV_SEND_SIGNALED} : 0u;
    ASSERT_EQ(link.a.post(request, {link.a.segment(0, 64)}), 0);
  }
  for (std::uint64_t id = 100; id < 104; ++id)
    ASSERT_EQ(link.a.post_receive(id, {link.a.segment(64, 64)}), 0);
  ASSERT_EQ(link.a.to(IBV_QPS_ERR), 0);
  for (std::uint64_t id = 0; id < 8; ++id) EXPECT_COMPLETED(link.a.next(), id, IBV_WC_WR_FLUSH_ERR);
  for (std::uint64_t id = 100; id < 104; ++id) {
    EXPECT_COMPLETED(link.a.next_received(), id, IBV_WC_WR_FLUSH_ERR);
  }
}

TEST(State, PostedInErrorIsFlushed) {
  Link link;
  ASSERT_EQ(link.a.to(IBV_QPS_ERR), 0);
  // Soft-RoCE forgets a receive that comes so late.
  if (is_fake(link.a.context.get())) {
    ASSERT_EQ(link.a.post_receive(1, {link.a.segment(0, 64)}), 0);
    EXPECT_COMPLETED(link.a.next_received(), 1, IBV_WC_WR_FLUSH_ERR);
  }
  ASSERT_EQ(link.a.send(2, 0, 64), 0);
  EXPECT_COMPLETED(link.a.next(), 2, IBV_WC_WR_FLUSH_ERR);
}

TEST(State, ResetForgetsAndStartsAnew) {
  Link link;
  ASSERT_EQ(link.b.post_receive(1, {link.b.segment(0, 64)}), 0);
  ASSERT_EQ(link.a.to(IBV_QPS_RESET), 0);
  ASSERT_EQ(link.b.to(IBV_QPS_RESET), 0);
  link.a.connect(link.b.address());
  link.b.connect(link.a.address());
  ASSERT_EQ(link.b.post_receive(2, {link.b.segment(0, 64)}), 0);
  link.a.fill(0, 64, 1);
  ASSERT_EQ(link.a.send(3, 0, 64), 0);
  EXPECT_COMPLETED(link.a.next(), 3, IBV_WC_SUCCESS);
  EXPECT_COMPLETED(link.b.next_received(), 2, IBV_WC_SUCCESS);
  EXPECT_TRUE(link.b.holds(0, 64, 1));
}

TEST(State, APeerThatIsNotThereIsGivenUp) {
  Link link(ConnectOptions{.timeout = 8, .retries = 2});
  ASSERT_EQ(link.b.to(IBV_QPS_RESET), 0);
  ASSERT_EQ(link.a.send(1, 0, 64), 0);
  ASSERT_EQ(link.a.send(2, 0, 64), 0);
  EXPECT_COMPLETED(link.a.next(), 1, IBV_WC_RETRY_EXC_ERR);
  EXPECT_COMPLETED(link.a.next(), 2, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(link.a.state(), IBV_QPS_ERR);
}

TEST(State, APeerThatComesUpLaterIsReached) {
  Side a;
  Side b;
  const ConnectOptions patient{.timeout = 14, .retries = 6};
  a.connect(b.address(), patient);
  ASSERT_EQ(b.to_init(), 0);
  ASSERT_EQ(b.post_receive(1, {b.segment(0, 64)}), 0);
  ASSERT_EQ(a.send(2, 0, 64), 0);
  EXPECT_FALSE(a.next(20ms).has_value());
  ASSERT_EQ(b.to_ready_to_receive(a.address(), patient), 0);
  EXPECT_COMPLETED(a.next(), 2, IBV_WC_SUCCESS);
  EXPECT_COMPLETED(b.next_received(), 1, IBV_WC_SUCCESS);
}

}  // namespace
}  // namespace fakeverbs_test
