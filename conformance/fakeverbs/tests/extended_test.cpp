// The extended calls: requests built call by call, completions read field by field.
#include "verbs_side.hpp"

namespace fakeverbs_test {
namespace {

constexpr std::uint64_t all_operations = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                                         IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
                                         IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                                         IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;

// Puts a queue pair that can be posted to the extended way in the place of the side's own.
ibv_qp_ex* make_extended(Side& side, ibv_cq* sends) {
  side.pair.reset();
  ibv_qp_init_attr_ex attributes{};
  attributes.send_cq = sends;
  attributes.recv_cq = side.receives.get();
  attributes.cap = {16, 16, 2, 2, 64};
  attributes.qp_type = IBV_QPT_RC;
  attributes.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  attributes.pd = side.domain.get();
  attributes.send_ops_flags = all_operations;
  side.pair.reset(ibv_create_qp_ex(side.context.get(), &attributes));
  return side.pair ? ibv_qp_to_qp_ex(side.pair.get()) : nullptr;
}

TEST(Extended, AnOrdinaryQueuePairHasNoExtendedFace) {
  const Side side;
  EXPECT_EQ(ibv_qp_to_qp_ex(side.pair.get()), nullptr);
}

TEST(Extended, EveryOperation) {
  Side a;
  Side b;
  ibv_qp_ex* const pair = make_extended(a, a.sends.get());
  ASSERT_NE(pair, nullptr);
  a.connect(b.address());
  b.connect(a.address());
  a.fill(0, 64, 1);
  b.fill(1024, 8, 2);
  for (std::uint64_t id = 0; id < 3; ++id) ASSERT_EQ(b.post_receive(id, {b.segment(2048 + id * 64, 64)}), 0);
  const auto peer = b.address();
  const auto own = a.segment(0, 64);

  ibv_wr_start(pair);
  pair->wr_flags = IBV_SEND_SIGNALED;
  pair->wr_id = 1;
  ibv_wr_rdma_write(pair, peer.key, peer.memory);
  ibv_wr_set_sge(pair, own.lkey, own.addr, own.length);
  pair->wr_id = 2;
  ibv_wr_send(pair);
  ibv_wr_set_inline_data(pair, a.at(0), 16);
  pair->wr_id = 3;
  ibv_wr_send_imm(pair, 33);
  ibv_wr_set_sge(pair, own.lkey, own.addr, 8);
  pair->wr_id = 4;
  ibv_wr_rdma_write_imm(pair, peer.key, peer.memory + 128, 44);
  const ibv_sge list[] = {{own.addr, 4, own.lkey}, {own.addr + 4, 4, own.lkey}};
  ibv_wr_set_sge_list(pair, 2, list);
  pair->wr_id = 5;
  ibv_wr_rdma_read(pair, peer.key, peer.memory + 1024);
  ibv_wr_set_sge(pair, own.lkey, own.addr + 512, 8);
  pair->wr_id = 6;
  ibv_wr_atomic_fetch_add(pair, peer.key, peer.memory + 4096, 5);
  ibv_wr_set_sge(pair, own.lkey, own.addr + 520, 8);
  pair->wr_id = 7;
  ibv_wr_atomic_cmp_swp(pair, peer.key, peer.memory + 4096, 5, 9);
  ibv_wr_set_sge(pair, own.lkey, own.addr + 528, 8);
  ASSERT_EQ(ibv_wr_complete(pair), 0);

  for (std::uint64_t id = 1; id <= 7; ++id) EXPECT_COMPLETED(a.next(), id, IBV_WC_SUCCESS);
  EXPECT_TRUE(b.holds(0, 64, 1));
  EXPECT_TRUE(b.holds(128, 8, 1));
  EXPECT_TRUE(b.holds(2048, 16, 1));
  EXPECT_TRUE(a.holds(512, 8, 2));
  EXPECT_EQ(b.memory[4096], std::byte{9});
}

TEST(Extended, AnAbortedBatchNeverWas) {
  Side a;
  Side b;
  ibv_qp_ex* const pair = make_extended(a, a.sends.get());
  ASSERT_NE(pair, nullptr);
  a.connect(b.address());
  b.connect(a.address());
  ASSERT_EQ(b.post_receive(1, {}), 0);
  ibv_wr_start(pair);
  pair->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_send(pair);
  ibv_wr_set_sge_list(pair, 0, nullptr);
  ibv_wr_abort(pair);
  EXPECT_FALSE(a.next(20ms).has_value());
  EXPECT_FALSE(b.next_received(1ms).has_value());
}

TEST(Extended, ABatchWithAMistakeIsRefusedWhole) {
  Side a;
  Side b;
  ibv_qp_ex* const pair = make_extended(a, a.sends.get());
  ASSERT_NE(pair, nullptr);
  a.connect(b.address());
  b.connect(a.address());
  std::vector<std::byte> much(1000);
  ibv_wr_start(pair);
  pair->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_send(pair);
  ibv_wr_set_inline_data(pair, much.data(), much.size());
  EXPECT_NE(ibv_wr_complete(pair), 0);
  EXPECT_FALSE(a.next(20ms).has_value());
}

TEST(Extended, CompletionsAreReadFieldByField) {
  Side a;
  Side b;
  ibv_cq_init_attr_ex attributes{};
  attributes.cqe = 16;
  attributes.wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_QP_NUM;
  ibv_cq_ex* const queue = ibv_create_cq_ex(b.context.get(), &attributes);
  ASSERT_NE(queue, nullptr);
  const QueueHandle owner(ibv_cq_ex_to_cq(queue));
  b.pair.reset();
  ibv_qp_init_attr initial{};
  initial.send_cq = initial.recv_cq = owner.get();
  initial.cap = {16, 16, 1, 1, 0};
  initial.qp_type = IBV_QPT_RC;
  b.pair.reset(ibv_create_qp(b.domain.get(), &initial));
  a.connect(b.address());
  b.connect(a.address());

  ibv_poll_cq_attr polling{};
  EXPECT_EQ(ibv_start_poll(queue, &polling), ENOENT);
  for (std::uint64_t id = 0; id < 3; ++id) {
    ASSERT_EQ(b.post_receive(id, {b.segment(0, 64)}), 0);
    ibv_send_wr request{};
    request.opcode = IBV_WR_SEND_WITH_IMM;
    request.imm_data = static_cast<std::uint32_t>(id) + 50;
    ASSERT_EQ(a.post(request, {a.segment(0, static_cast<std::uint32_t>(id) + 1)}), 0);
  }
  ASSERT_TRUE(eventually([&] { return ibv_start_poll(queue, &polling) == 0; }));
  for (std::uint64_t id = 0; id < 3; ++id) {
    EXPECT_EQ(queue->wr_id, id);
    EXPECT_EQ(queue->status, IBV_WC_SUCCESS);
    EXPECT_EQ(ibv_wc_read_opcode(queue), IBV_WC_RECV);
    EXPECT_EQ(ibv_wc_read_byte_len(queue), id + 1);
    EXPECT_EQ(ibv_wc_read_imm_data(queue), id + 50);
    EXPECT_EQ(ibv_wc_read_qp_num(queue), b.pair->qp_num);
    EXPECT_NE(ibv_wc_read_wc_flags(queue) & IBV_WC_WITH_IMM, 0u);
    EXPECT_EQ(ibv_next_poll(queue), id == 2 ? ENOENT : 0);
  }
  ibv_end_poll(queue);
  b.pair.reset();
}

}  // namespace
}  // namespace fakeverbs_test
