// What a device says of itself, and what it refuses.
#include <sys/mman.h>

#include <cerrno>

#include "verbs_side.hpp"

namespace fakeverbs_test {
namespace {

// Of type int: libibverbs' macro mixes two enumerations otherwise.
constexpr int local_write = IBV_ACCESS_LOCAL_WRITE;
constexpr int remote_read = IBV_ACCESS_REMOTE_READ;
constexpr int remote_write = IBV_ACCESS_REMOTE_WRITE;
constexpr int remote_atomic = IBV_ACCESS_REMOTE_ATOMIC;

TEST(Device, DescribesItself) {
  const auto context = open_device();
  ASSERT_TRUE(context);
  ibv_device_attr attributes{};
  ASSERT_EQ(ibv_query_device(context.get(), &attributes), 0);
  EXPECT_GE(attributes.max_qp_wr, 64);
  EXPECT_GE(attributes.max_sge, 4);
  EXPECT_GE(attributes.max_cqe, 256);
  EXPECT_NE(attributes.atomic_cap, IBV_ATOMIC_NONE);
  ibv_device_attr_ex extended{};
  ASSERT_EQ(ibv_query_device_ex(context.get(), nullptr, &extended), 0);
  EXPECT_EQ(extended.orig_attr.max_qp_wr, attributes.max_qp_wr);
  ibv_port_attr port{};
  ASSERT_EQ(ibv_query_port(context.get(), 1, &port), 0);
  EXPECT_EQ(port.state, IBV_PORT_ACTIVE);
  EXPECT_EQ(port.link_layer, IBV_LINK_LAYER_ETHERNET);
  EXPECT_GE(port.max_msg_sz, 1u << 20);
  EXPECT_NE(ibv_query_port(context.get(), 2, &port), 0);
}

TEST(Device, GidsAgreeHoweverTheyAreAskedFor) {
  const auto context = open_device();
  ASSERT_TRUE(context);
  const auto found = find_gid(context.get());
  EXPECT_EQ(found.gid_type, std::uint32_t{IBV_GID_TYPE_ROCE_V2});
  ibv_gid plain{};
  ASSERT_EQ(ibv_query_gid(context.get(), 1, static_cast<int>(found.gid_index), &plain), 0);
  EXPECT_EQ(plain.global.interface_id, found.gid.global.interface_id);
  ibv_gid_entry entry{};
  ASSERT_EQ(ibv_query_gid_ex(context.get(), 1, found.gid_index, &entry, 0), 0);
  EXPECT_EQ(entry.gid.global.interface_id, found.gid.global.interface_id);
  EXPECT_NE(ibv_query_gid(context.get(), 1, 100'000, &plain), 0);
}

TEST(Device, OpensManyTimes) {
  std::vector<ContextHandle> contexts;
  for (int count = 0; count < 8; ++count) contexts.push_back(open_device());
  for (const auto& context : contexts) EXPECT_TRUE(context);
}

TEST(Region, RemoteWritingNeedsLocalWriting) {
  Side side;
  std::vector<std::byte> memory(4096);
  EXPECT_EQ(ibv_reg_mr(side.domain.get(), memory.data(), memory.size(), remote_write), nullptr);
  EXPECT_EQ(ibv_reg_mr(side.domain.get(), memory.data(), memory.size(), remote_atomic), nullptr);
  const RegionHandle region(ibv_reg_mr(side.domain.get(), memory.data(), memory.size(), remote_read));
  EXPECT_TRUE(region);
}

TEST(Region, MemoryMustBeThere) {
  Side side;
  void* const hole = ::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(hole, MAP_FAILED);
  ::munmap(hole, 4096);
  errno = 0;
  EXPECT_EQ(ibv_reg_mr(side.domain.get(), hole, 4096, local_write), nullptr);
  EXPECT_EQ(errno, EFAULT);
}

TEST(Region, MemoryMustBeWritable) {
  Side side;
  void* const page = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  EXPECT_EQ(ibv_reg_mr(side.domain.get(), page, 4096, local_write), nullptr);
  ::munmap(page, 4096);
}

TEST(Region, KeysDiffer) {
  Side side;
  std::vector<std::byte> memory(4096);
  const RegionHandle first(ibv_reg_mr(side.domain.get(), memory.data(), memory.size(), all_rights));
  const RegionHandle second(ibv_reg_mr(side.domain.get(), memory.data(), memory.size(), all_rights));
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->rkey, second->rkey);
  EXPECT_NE(first->lkey, side.region->lkey);
}

TEST(Objects, InUseAreNotDestroyed) {
  Side side;
  EXPECT_NE(ibv_destroy_cq(side.sends.get()), 0);
  EXPECT_NE(ibv_dealloc_pd(side.domain.get()), 0);
  EXPECT_NE(ibv_destroy_comp_channel(side.channel.get()), 0);
}

TEST(Limits, AreEnforcedAtCreation) {
  Side side;
  ibv_device_attr limits{};
  ASSERT_EQ(ibv_query_device(side.context.get(), &limits), 0);
  EXPECT_EQ(ibv_create_cq(side.context.get(), limits.max_cqe + 1, nullptr, nullptr, 0), nullptr);
  EXPECT_EQ(ibv_create_cq(side.context.get(), 0, nullptr, nullptr, 0), nullptr);
  ibv_qp_init_attr attributes{};
  attributes.send_cq = attributes.recv_cq = side.sends.get();
  attributes.qp_type = IBV_QPT_RC;
  attributes.cap = {static_cast<std::uint32_t>(limits.max_qp_wr) + 1, 1, 1, 1, 0};
  EXPECT_EQ(ibv_create_qp(side.domain.get(), &attributes), nullptr);
  attributes.cap = {1, 1, static_cast<std::uint32_t>(limits.max_sge) + 1, 1, 0};
  EXPECT_EQ(ibv_create_qp(side.domain.get(), &attributes), nullptr);
}

}  // namespace
}  // namespace fakeverbs_test
