// Writes, reads and atomic operations.
#include <cerrno>
#include <cstring>

#include "verbs_side.hpp"

namespace fakeverbs_test {
namespace {

ibv_send_wr atomic_request(ibv_wr_opcode opcode, std::uint64_t address, std::uint32_t key,
                           std::uint64_t compare_add, std::uint64_t swap) {
  ibv_send_wr request{};
  request.wr_id = 77;
  request.opcode = opcode;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.atomic = {address, compare_add, swap, key};
  return request;
}

std::uint64_t word_at(Side& side, std::size_t offset) {
  std::uint64_t word = 0;
  std::memcpy(&word, side.at(offset), sizeof word);
  return word;
}

void set_word(Side& side, std::size_t offset, std::uint64_t word) {
  std::memcpy(side.at(offset), &word, sizeof word);
}

// The request failed with `status`, and the target's queue pair is broken and says so (Soft-RoCE's does not
// say it).
void expect_refused(Link& link, ibv_wc_status status, ibv_event_type event) {
  const auto entry = link.a.next();
  ASSERT_TRUE(entry.has_value());
  EXPECT_STREQ(ibv_wc_status_str(entry->status), ibv_wc_status_str(status));
  EXPECT_EQ(link.a.state(), IBV_QPS_ERR);
  EXPECT_TRUE(eventually([&] { return link.b.state() == IBV_QPS_ERR; }));
  if (is_fake(link.b.context.get())) {
    EXPECT_EQ(link.b.next_event(), event);
  }
}

TEST(OneSided, WriteIsInPlace) {
  Link link;
  link.a.fill(0, 5000, 1);
  ASSERT_EQ(link.a.write(1, 0, 5000, link.b.address(), 100), 0);
  const auto entry = link.a.next();
  EXPECT_COMPLETED(entry, 1, IBV_WC_SUCCESS);
  EXPECT_EQ(entry->opcode, IBV_WC_RDMA_WRITE);
  EXPECT_TRUE(link.b.holds(100, 5000, 1));
  EXPECT_EQ(link.b.memory[99], std::byte{0});
  EXPECT_EQ(link.b.memory[5100], std::byte{0});
  EXPECT_FALSE(link.b.next_received(10ms).has_value());
}

TEST(OneSided, ReadFetches) {
  Link link;
  link.b.fill(40, 5000, 2);
  ASSERT_EQ(link.a.read(1, 8, 5000, link.b.address(), 40), 0);
  const auto entry = link.a.next();
  EXPECT_COMPLETED(entry, 1, IBV_WC_SUCCESS);
  EXPECT_EQ(entry->opcode, IBV_WC_RDMA_READ);
  EXPECT_EQ(entry->byte_len, 5000u);
  EXPECT_TRUE(link.a.holds(8, 5000, 2));
}

TEST(OneSided, NothingNeedsNoKey) {
  Link link;
  ibv_send_wr request{};
  request.wr_id = 1;
  request.opcode = IBV_WR_RDMA_WRITE;
  request.send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
  ASSERT_EQ(link.a.post(request, {}), 0);
  EXPECT_COMPLETED(link.a.next(), 1, IBV_WC_SUCCESS);
}

TEST(OneSided, WriteWithImmediateTakesAReceive) {
  Link link;
  link.a.fill(0, 64, 3);
  ASSERT_EQ(link.b.post_receive(5, {}), 0);
  ibv_send_wr request{};
  request.wr_id = 1;
  request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  request.send_flags = IBV_SEND_SIGNALED;
  request.imm_data = 99;
  request.wr.rdma = {link.b.address().memory, link.b.address().key};
  ASSERT_EQ(link.a.post(request, {link.a.segment(0, 64)}), 0);
  EXPECT_COMPLETED(link.a.next(), 1, IBV_WC_SUCCESS);
  const auto received = link.b.next_received();
  EXPECT_COMPLETED(received, 5, IBV_WC_SUCCESS);
  EXPECT_EQ(received->opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(received->byte_len, 64u);
  EXPECT_EQ(received->imm_data, 99u);
  EXPECT_TRUE(link.b.holds(0, 64, 3));
}

TEST(OneSided, FetchAndAdd) {
  Link link;
  set_word(link.b, 16, 40);
  ASSERT_EQ(link.a.post(atomic_request(IBV_WR_ATOMIC_FETCH_AND_ADD, link.b.address().memory + 16,
                                       link.b.address().key, 2, 0),
                        {link.a.segment(0, 8)}),
            0);
  const auto entry = link.a.next();
  EXPECT_COMPLETED(entry, 77, IBV_WC_SUCCESS);
  EXPECT_EQ(entry->opcode, IBV_WC_FETCH_ADD);
  EXPECT_EQ(word_at(link.a, 0), 40u);
  EXPECT_EQ(word_at(link.b, 16), 42u);
}

TEST(OneSided, CompareAndSwap) {
  Link link;
  set_word(link.b, 0, 5);
  const auto key = link.b.address().key;
  const auto address = link.b.address().memory;
  ASSERT_EQ(
      link.a.post(atomic_request(IBV_WR_ATOMIC_CMP_AND_SWP, address, key, 4, 100), {link.a.segment(0, 8)}),
      0);
  EXPECT_COMPLETED(link.a.next(), 77, IBV_WC_SUCCESS);
  EXPECT_EQ(word_at(link.b, 0), 5u) << "did not compare equal";
  ASSERT_EQ(
      link.a.post(atomic_request(IBV_WR_ATOMIC_CMP_AND_SWP, address, key, 5, 100), {link.a.segment(8, 8)}),
      0);
  const auto entry = link.a.next();
  EXPECT_COMPLETED(entry, 77, IBV_WC_SUCCESS);
  EXPECT_EQ(entry->opcode, IBV_WC_COMP_SWAP);
  EXPECT_EQ(word_at(link.a, 8), 5u);
  EXPECT_EQ(word_at(link.b, 0), 100u);
}

TEST(OneSided, AtomicsAreAtomicAmongThemselves) {
  constexpr std::uint64_t rounds = 200;
  Link first;
  Side second;
  Side other_end;  // a queue pair of its own towards the same word
  second.connect(other_end.address());
  other_end.connect(second.address());
  set_word(first.b, 0, 0);
  const RegionHandle also(ibv_reg_mr(other_end.domain.get(), first.b.memory.data(), 64, all_rights));
  ASSERT_TRUE(also);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    ASSERT_EQ(first.a.post(atomic_request(IBV_WR_ATOMIC_FETCH_AND_ADD, first.b.address().memory,
                                          first.b.address().key, 1, 0),
                           {first.a.segment(0, 8)}),
              0);
    ASSERT_EQ(
        second.post(atomic_request(IBV_WR_ATOMIC_FETCH_AND_ADD, first.b.address().memory, also->rkey, 1, 0),
                    {second.segment(0, 8)}),
        0);
    EXPECT_COMPLETED(first.a.next(), 77, IBV_WC_SUCCESS);
    EXPECT_COMPLETED(second.next(), 77, IBV_WC_SUCCESS);
  }
  EXPECT_EQ(word_at(first.b, 0), 2 * rounds);
}

TEST(OneSided, UnalignedAtomicIsRefused) {
  Link link;
  const int result = link.a.post(
      atomic_request(IBV_WR_ATOMIC_FETCH_AND_ADD, link.b.address().memory + 4, link.b.address().key, 1, 0),
      {link.a.segment(0, 8)});
  if (!is_fake(link.a.context.get()) && result == EINVAL) return;  // Soft-RoCE does not even take it
  ASSERT_EQ(result, 0);
  expect_refused(link, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
}

TEST(OneSided, BeyondTheRegionIsRefused) {
  Link link;
  link.a.fill(0, 64, 9);
  ASSERT_EQ(link.a.write(1, 0, 64, link.b.address(), link.b.memory.size() - 63), 0);
  expect_refused(link, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
}

TEST(OneSided, AnAddressThatWrapsIsRefused) {
  Link link;
  auto address = link.b.address();
  address.memory = ~std::uint64_t{0} - 8;
  ASSERT_EQ(link.a.write(1, 0, 64, address, 0), 0);
  expect_refused(link, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
}

TEST(OneSided, AnUnknownKeyIsRefused) {
  Link link;
  auto address = link.b.address();
  address.key ^= 0x10;
  ASSERT_EQ(link.a.read(1, 0, 64, address, 0), 0);
  expect_refused(link, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
}

TEST(OneSided, TheKeyOfARegionThatIsGoneIsRefused) {
  Link link;
  std::vector<std::byte> memory(4096);
  RegionHandle region(ibv_reg_mr(link.b.domain.get(), memory.data(), memory.size(), all_rights));
  auto address = link.b.address();
  address.memory = reinterpret_cast<std::uint64_t>(memory.data());
  address.key = region->rkey;
  ASSERT_EQ(link.a.write(1, 0, 64, address, 0), 0);
  EXPECT_COMPLETED(link.a.next(), 1, IBV_WC_SUCCESS);
  region.reset();
  ASSERT_EQ(link.a.write(2, 0, 64, address, 0), 0);
  expect_refused(link, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
}

TEST(OneSided, ARegionOfAnotherDomainIsRefused) {
  Link link;
  const DomainHandle domain(ibv_alloc_pd(link.b.context.get()));
  const RegionHandle region(ibv_reg_mr(domain.get(), link.b.memory.data(), 4096, all_rights));
  auto address = link.b.address();
  address.key = region->rkey;
  ASSERT_EQ(link.a.write(1, 0, 64, address, 0), 0);
  expect_refused(link, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
}

TEST(OneSided, WritingNeedsTheRegionsRight) {
  Link link({}, {.rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ});
  ASSERT_EQ(link.a.read(1, 0, 64, link.b.address(), 0), 0);
  EXPECT_COMPLETED(link.a.next(), 1, IBV_WC_SUCCESS);
  ASSERT_EQ(link.a.write(2, 0, 64, link.b.address(), 0), 0);
  expect_refused(link, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
}

TEST(OneSided, WritingNeedsTheQueuePairsRight) {
  Link link({}, {.pair_rights = IBV_ACCESS_REMOTE_READ});
  ASSERT_EQ(link.a.write(2, 0, 64, link.b.address(), 0), 0);
  expect_refused(link, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
}

TEST(OneSided, ReadingIntoReadOnlyMemoryFailsHere) {
  Link link({.rights = IBV_ACCESS_REMOTE_READ}, {});
  ASSERT_EQ(link.a.read(1, 0, 64, link.b.address(), 0), 0);
  EXPECT_COMPLETED(link.a.next(), 1, IBV_WC_LOC_PROT_ERR);
}

TEST(OneSided, AReadBehindAWriteSeesIt) {
  Link link;
  link.a.fill(0, 4096, 12);
  ASSERT_EQ(link.a.write(1, 0, 4096, link.b.address(), 0), 0);
  ASSERT_EQ(link.a.read(2, 8192, 4096, link.b.address(), 0), 0);
  EXPECT_COMPLETED(link.a.next(), 1, IBV_WC_SUCCESS);
  EXPECT_COMPLETED(link.a.next(), 2, IBV_WC_SUCCESS);
  EXPECT_TRUE(link.a.holds(8192, 4096, 12));
}

}  // namespace
}  // namespace fakeverbs_test
