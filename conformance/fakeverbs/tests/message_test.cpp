// Sends and receives.
#include <cerrno>

#include "verbs_side.hpp"

namespace fakeverbs_test {
namespace {

TEST(Message, ArrivesWithItsLength) {
  Link link;
  link.a.fill(0, 1000, 1);
  ASSERT_EQ(link.b.post_receive(7, {link.b.segment(0, 4096)}), 0);
  ASSERT_EQ(link.a.send(8, 0, 1000), 0);
  const auto sent = link.a.next();
  EXPECT_COMPLETED(sent, 8, IBV_WC_SUCCESS);
  EXPECT_EQ(sent->opcode, IBV_WC_SEND);
  EXPECT_EQ(sent->qp_num, link.a.pair->qp_num);
  const auto received = link.b.next_received();
  EXPECT_COMPLETED(received, 7, IBV_WC_SUCCESS);
  EXPECT_EQ(received->opcode, IBV_WC_RECV);
  EXPECT_EQ(received->byte_len, 1000u);
  EXPECT_EQ(received->qp_num, link.b.pair->qp_num);
  EXPECT_TRUE(link.b.holds(0, 1000, 1));
}

TEST(Message, OfNothingArrives) {
  Link link;
  ASSERT_EQ(link.b.post_receive(1, {}), 0);
  ibv_send_wr request{};
  request.wr_id = 2;
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED;
  ASSERT_EQ(link.a.post(request, {}), 0);
  EXPECT_COMPLETED(link.a.next(), 2, IBV_WC_SUCCESS);
  const auto received = link.b.next_received();
  EXPECT_COMPLETED(received, 1, IBV_WC_SUCCESS);
  EXPECT_EQ(received->byte_len, 0u);
}

TEST(Message, IsGatheredAndScattered) {
  Link link;
  link.a.fill(0, 300, 3);
  ASSERT_EQ(link.b.post_receive(1, {link.b.segment(0, 50), link.b.segment(50, 1), link.b.segment(51, 4000)}),
            0);
  ibv_send_wr request{};
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED;
  ASSERT_EQ(link.a.post(request, {link.a.segment(0, 7), link.a.segment(7, 193), link.a.segment(200, 100)}),
            0);
  EXPECT_COMPLETED(link.b.next_received(), 1, IBV_WC_SUCCESS);
  EXPECT_TRUE(link.b.holds(0, 300, 3));
}

TEST(Message, CarriesImmediateData) {
  Link link;
  ASSERT_EQ(link.b.post_receive(1, {link.b.segment(0, 64)}), 0);
  ibv_send_wr request{};
  request.opcode = IBV_WR_SEND_WITH_IMM;
  request.imm_data = 0x12345678;
  ASSERT_EQ(link.a.post(request, {link.a.segment(0, 4)}), 0);
  const auto received = link.b.next_received();
  EXPECT_COMPLETED(received, 1, IBV_WC_SUCCESS);
  EXPECT_NE(received->wc_flags & IBV_WC_WITH_IMM, 0u);
  EXPECT_EQ(received->imm_data, 0x12345678u);
}

TEST(Message, InlineBytesMayChangeAfterPosting) {
  Link link;
  // Without a receive it stays queued while the bytes change.
  link.a.fill(0, 60, 4);
  ASSERT_EQ(link.a.send(1, 0, 60, IBV_SEND_INLINE), 0);
  link.a.fill(0, 60, 5);
  ASSERT_EQ(link.b.post_receive(2, {link.b.segment(0, 64)}), 0);
  EXPECT_COMPLETED(link.b.next_received(), 2, IBV_WC_SUCCESS);
  EXPECT_TRUE(link.b.holds(0, 60, 4));
}

TEST(Message, InlineBeyondTheLimitIsRefused) {
  Link link;
  ibv_qp_attr attributes{};
  ibv_qp_init_attr initial{};
  ASSERT_EQ(ibv_query_qp(link.a.pair.get(), &attributes, IBV_QP_CAP, &initial), 0);
  EXPECT_NE(link.a.send(1, 0, initial.cap.max_inline_data + 1, IBV_SEND_INLINE), 0);
}

TEST(Message, KeepsItsOrder) {
  Link link(SideOptions{.send_depth = 128, .receive_depth = 128});
  for (std::uint64_t id = 0; id < 100; ++id)
    ASSERT_EQ(link.b.post_receive(id, {link.b.segment(id * 8, 8)}), 0);
  for (std::uint64_t id = 0; id < 100; ++id) ASSERT_EQ(link.a.send(id, 0, 8), 0);
  for (std::uint64_t id = 0; id < 100; ++id) {
    EXPECT_COMPLETED(link.a.next(), id, IBV_WC_SUCCESS);
    EXPECT_COMPLETED(link.b.next_received(), id, IBV_WC_SUCCESS);
  }
}

TEST(Message, OnlySignalledOnesComplete) {
  Link link;
  for (std::uint64_t id = 0; id < 10; ++id) {
    ASSERT_EQ(link.b.post_receive(id, {link.b.segment(0, 8)}), 0);
    ibv_send_wr request{};
    request.wr_id = id;
    request.opcode = IBV_WR_SEND;
    request.send_flags = id == 9 ? unsigned{IBV_SEND_SIGNALED} : 0u;
    ASSERT_EQ(link.a.post(request, {link.a.segment(0, 8)}), 0);
  }
  EXPECT_COMPLETED(link.a.next(), 9, IBV_WC_SUCCESS);
  EXPECT_FALSE(link.a.next(20ms).has_value());
}

TEST(Message, AllSignalledWhenThePairSaysSo) {
  Link link(SideOptions{.signal_all = true});
  ASSERT_EQ(link.b.post_receive(1, {link.b.segment(0, 8)}), 0);
  ibv_send_wr request{};
  request.wr_id = 2;
  request.opcode = IBV_WR_SEND;
  ASSERT_EQ(link.a.post(request, {link.a.segment(0, 8)}), 0);
  EXPECT_COMPLETED(link.a.next(), 2, IBV_WC_SUCCESS);
}

TEST(Message, WaitsForItsReceive) {
  Link link;
  link.a.fill(0, 64, 6);
  ASSERT_EQ(link.a.send(1, 0, 64), 0);
  EXPECT_FALSE(link.a.next(30ms).has_value());
  ASSERT_EQ(link.b.post_receive(2, {link.b.segment(0, 64)}), 0);
  EXPECT_COMPLETED(link.a.next(), 1, IBV_WC_SUCCESS);
  EXPECT_COMPLETED(link.b.next_received(), 2, IBV_WC_SUCCESS);
  EXPECT_TRUE(link.b.holds(0, 64, 6));
}

TEST(Message, GivesUpWhenToldHowOftenToTry) {
  Link link(ConnectOptions{.receiver_retries = 2, .receiver_timer = 10});
  ASSERT_EQ(link.a.send(1, 0, 64), 0);
  EXPECT_COMPLETED(link.a.next(), 1, IBV_WC_RNR_RETRY_EXC_ERR);
  EXPECT_EQ(link.a.state(), IBV_QPS_ERR);
}

TEST(Message, TooLongForTheReceiveBreaksBothEnds) {
  Link link;
  ASSERT_EQ(link.b.post_receive(1, {link.b.segment(0, 63)}), 0);
  ASSERT_EQ(link.b.post_receive(2, {link.b.segment(0, 64)}), 0);
  ASSERT_EQ(link.a.send(3, 0, 64), 0);
  const auto sent = link.a.next();
  const auto received = link.b.next_received();
  ASSERT_TRUE(sent.has_value() && received.has_value());
  EXPECT_EQ(sent->wr_id, 3u);
  EXPECT_EQ(received->wr_id, 1u);
  if (is_fake(link.a.context.get())) {
    EXPECT_EQ(sent->status, IBV_WC_REM_INV_REQ_ERR);
    EXPECT_EQ(received->status, IBV_WC_LOC_LEN_ERR);
  } else {
    // Soft-RoCE says something else at both ends, and which depends on its version.
    EXPECT_NE(sent->status, IBV_WC_SUCCESS);
    EXPECT_NE(received->status, IBV_WC_SUCCESS);
  }
  EXPECT_COMPLETED(link.b.next_received(), 2, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(link.a.state(), IBV_QPS_ERR);
  EXPECT_TRUE(eventually([&] { return link.b.state() == IBV_QPS_ERR; }));
}

TEST(Message, FromUnregisteredMemoryFails) {
  Link link;
  ASSERT_EQ(link.b.post_receive(1, {link.b.segment(0, 64)}), 0);
  ibv_send_wr request{};
  request.wr_id = 2;
  request.opcode = IBV_WR_SEND;
  auto segment = link.a.segment(0, 64);
  segment.addr += link.a.memory.size();
  ASSERT_EQ(link.a.post(request, {segment}), 0);
  EXPECT_COMPLETED(link.a.next(), 2, IBV_WC_LOC_PROT_ERR);
}

TEST(Message, TheFullQueueSaysSo) {
  Link link(SideOptions{.send_depth = 8});
  ibv_qp_attr attributes{};
  ibv_qp_init_attr initial{};
  ASSERT_EQ(ibv_query_qp(link.a.pair.get(), &attributes, IBV_QP_CAP, &initial), 0);
  std::uint32_t posted = 0;
  int result = 0;
  while (posted <= initial.cap.max_send_wr && (result = link.a.send(posted, 0, 8)) == 0) ++posted;
  EXPECT_EQ(result, ENOMEM);
  EXPECT_EQ(posted, initial.cap.max_send_wr);
  for (std::uint32_t index = 0; index < posted; ++index) ASSERT_EQ(link.b.post_receive(index, {}), 0);
}

TEST(Message, AChainStopsAtItsFirstBadRequest) {
  Link link;
  ASSERT_EQ(link.b.post_receive(1, {link.b.segment(0, 8)}), 0);
  auto good_segment = link.a.segment(0, 8);
  std::vector<ibv_sge> many(1000, good_segment);
  ibv_send_wr bad_request{};
  bad_request.opcode = IBV_WR_SEND;
  bad_request.sg_list = many.data();
  bad_request.num_sge = static_cast<int>(many.size());
  ibv_send_wr good_request{};
  good_request.wr_id = 5;
  good_request.opcode = IBV_WR_SEND;
  good_request.send_flags = IBV_SEND_SIGNALED;
  good_request.sg_list = &good_segment;
  good_request.num_sge = 1;
  good_request.next = &bad_request;
  ibv_send_wr* bad = nullptr;
  EXPECT_NE(ibv_post_send(link.a.pair.get(), &good_request, &bad), 0);
  EXPECT_EQ(bad, &bad_request);
  EXPECT_COMPLETED(link.a.next(), 5, IBV_WC_SUCCESS);
}

TEST(SharedReceives, ServeSeveralQueuePairs) {
  Side first;
  Side second;
  Side target({.shared_receives = true});
  first.connect(target.address());
  target.connect(first.address());
  for (std::uint64_t id = 0; id < 4; ++id)
    ASSERT_EQ(target.post_receive(id, {target.segment(id * 64, 64)}), 0);
  for (std::uint64_t id = 0; id < 4; ++id) {
    ASSERT_EQ(first.send(id, 0, 16), 0);
    EXPECT_COMPLETED(first.next(), id, IBV_WC_SUCCESS);
    const auto received = target.next_received();
    EXPECT_COMPLETED(received, id, IBV_WC_SUCCESS);
    EXPECT_EQ(received->byte_len, 16u);
  }
  // Empty now: the next one waits.
  ASSERT_EQ(first.send(9, 0, 16), 0);
  EXPECT_FALSE(first.next(20ms).has_value());
  ASSERT_EQ(target.post_receive(10, {target.segment(0, 64)}), 0);
  EXPECT_COMPLETED(first.next(), 9, IBV_WC_SUCCESS);
  EXPECT_COMPLETED(target.next_received(), 10, IBV_WC_SUCCESS);
}

TEST(SharedReceives, TellWhenTheyRunLow) {
  Side sender;
  Side target({.shared_receives = true});
  sender.connect(target.address());
  target.connect(sender.address());
  for (std::uint64_t id = 0; id < 8; ++id) ASSERT_EQ(target.post_receive(id, {target.segment(0, 64)}), 0);
  ibv_srq_attr attributes{};
  attributes.srq_limit = 6;
  ASSERT_EQ(ibv_modify_srq(target.pool.get(), &attributes, IBV_SRQ_LIMIT), 0);
  for (std::uint64_t id = 0; id < 4; ++id) {
    ASSERT_EQ(sender.send(id, 0, 16), 0);
    EXPECT_COMPLETED(sender.next(), id, IBV_WC_SUCCESS);
  }
  EXPECT_EQ(target.next_event(), IBV_EVENT_SRQ_LIMIT_REACHED);
  ASSERT_EQ(ibv_query_srq(target.pool.get(), &attributes), 0);
  EXPECT_EQ(attributes.srq_limit, 0u) << "the limit is disarmed when it was reached";
}

}  // namespace
}  // namespace fakeverbs_test
