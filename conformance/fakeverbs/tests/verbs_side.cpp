#include "verbs_side.hpp"

#include <poll.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

namespace fakeverbs_test {
namespace {

std::byte pattern(std::size_t index, int seed) {
  return static_cast<std::byte>((index * 131 + static_cast<std::size_t>(seed) * 17 + 1) & 0xff);
}

ibv_qp* create_pair(Side& side) {
  ibv_qp_init_attr attributes{};
  attributes.send_cq = side.sends.get();
  attributes.recv_cq = side.receives.get();
  attributes.srq = side.pool.get();
  attributes.cap = {.max_send_wr = side.options.send_depth,
                    .max_recv_wr = side.options.receive_depth,
                    .max_send_sge = side.options.segments,
                    .max_recv_sge = side.options.segments,
                    .max_inline_data = side.options.inline_bytes};
  attributes.qp_type = IBV_QPT_RC;
  attributes.sq_sig_all = side.options.signal_all ? 1 : 0;
  return ibv_create_qp(side.domain.get(), &attributes);
}

}  // namespace

ContextHandle open_device() {
  const char* const wanted = std::getenv("FAKEVERBS_TEST_DEVICE");
  int count = 0;
  ibv_device** const list = ibv_get_device_list(&count);
  if (list == nullptr) return nullptr;
  ContextHandle context;
  for (int index = 0; index < count && !context; ++index) {
    if (wanted == nullptr || std::string(wanted) == ibv_get_device_name(list[index])) {
      context.reset(ibv_open_device(list[index]));
    }
  }
  ibv_free_device_list(list);
  return context;
}

ibv_gid_entry find_gid(ibv_context* context) {
  std::vector<ibv_gid_entry> entries(64);
  const ssize_t count = ibv_query_gid_table(context, entries.data(), entries.size(), 0);
  for (ssize_t index = 0; index < count; ++index) {
    const auto& entry = entries[static_cast<std::size_t>(index)];
    const auto& raw = entry.gid.raw;
    const bool ipv4 = std::all_of(raw, raw + 10, [](auto byte) { return byte == 0; }) && raw[10] == 0xff;
    if (ipv4 && entry.gid_type == IBV_GID_TYPE_ROCE_V2) return entry;
  }
  return {};
}

bool is_fake(ibv_context* context) {
  return std::string(ibv_get_device_name(context->device)).starts_with("fake");
}

Side::Side(const SideOptions& from) : options(from), context(open_device()), memory(from.bytes) {
  if (!context) throw std::runtime_error("no verbs device: run under fakeverbs or in the Soft-RoCE guest");
  gid = find_gid(context.get());
  domain.reset(ibv_alloc_pd(context.get()));
  region.reset(ibv_reg_mr(domain.get(), memory.data(), memory.size(), options.rights));
  channel.reset(ibv_create_comp_channel(context.get()));
  sends.reset(ibv_create_cq(context.get(), options.entries, nullptr, channel.get(), 0));
  receives.reset(ibv_create_cq(context.get(), options.entries, nullptr, channel.get(), 0));
  if (options.shared_receives) {
    ibv_srq_init_attr attributes{};
    attributes.attr = {.max_wr = options.receive_depth, .max_sge = options.segments, .srq_limit = 0};
    pool.reset(ibv_create_srq(domain.get(), &attributes));
    if (!pool) throw std::runtime_error("no shared receive queue");
  }
  pair.reset(create_pair(*this));
  if (!domain || !region || !channel || !sends || !receives || !pair) {
    throw std::runtime_error("creating a verbs object failed");
  }
}

Address Side::address() const {
  return {.gid = gid.gid,
          .number = pair->qp_num,
          .sequence = pair->qp_num & 0xffff,
          .memory = reinterpret_cast<std::uint64_t>(memory.data()),
          .key = region->rkey};
}

int Side::to(ibv_qp_state state) {
  ibv_qp_attr attributes{};
  attributes.qp_state = state;
  return ibv_modify_qp(pair.get(), &attributes, IBV_QP_STATE);
}

int Side::to_init() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = 1;
  attributes.qp_access_flags = options.pair_rights & ~unsigned{IBV_ACCESS_LOCAL_WRITE};
  return ibv_modify_qp(pair.get(), &attributes,
                       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

int Side::to_ready_to_receive(const Address& peer, const ConnectOptions& connecting) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = IBV_MTU_1024;
  attributes.dest_qp_num = peer.number;
  attributes.rq_psn = peer.sequence;
  attributes.max_dest_rd_atomic = connecting.reads;
  attributes.min_rnr_timer = connecting.receiver_timer;
  attributes.ah_attr.is_global = 1;
  attributes.ah_attr.port_num = 1;
  attributes.ah_attr.grh.dgid = peer.gid;
  attributes.ah_attr.grh.hop_limit = 64;
  attributes.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(gid.gid_index);
  return ibv_modify_qp(pair.get(), &attributes,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

int Side::to_ready_to_send(const ConnectOptions& connecting) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = connecting.timeout;
  attributes.retry_cnt = connecting.retries;
  attributes.rnr_retry = connecting.receiver_retries;
  attributes.sq_psn = address().sequence;
  attributes.max_rd_atomic = connecting.reads;
  return ibv_modify_qp(pair.get(), &attributes,
                       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                           IBV_QP_MAX_QP_RD_ATOMIC);
}

void Side::connect(const Address& peer, const ConnectOptions& connecting) {
  ASSERT_EQ(to_init(), 0);
  ASSERT_EQ(to_ready_to_receive(peer, connecting), 0);
  ASSERT_EQ(to_ready_to_send(connecting), 0);
}

ibv_qp_state Side::state() const {
  ibv_qp_attr attributes{};
  ibv_qp_init_attr initial{};
  EXPECT_EQ(ibv_query_qp(pair.get(), &attributes, IBV_QP_STATE, &initial), 0);
  return attributes.qp_state;
}

ibv_sge Side::segment(std::size_t offset, std::uint32_t length) const {
  return {reinterpret_cast<std::uint64_t>(memory.data()) + offset, length, region->lkey};
}

void Side::fill(std::size_t offset, std::size_t length, int seed) {
  for (std::size_t index = 0; index < length; ++index) memory[offset + index] = pattern(index, seed);
}

bool Side::holds(std::size_t offset, std::size_t length, int seed) const {
  for (std::size_t index = 0; index < length; ++index) {
    if (memory[offset + index] != pattern(index, seed)) return false;
  }
  return true;
}

int Side::post_receive(std::uint64_t id, std::vector<ibv_sge> segments) {
  ibv_recv_wr request{};
  request.wr_id = id;
  request.sg_list = segments.data();
  request.num_sge = static_cast<int>(segments.size());
  ibv_recv_wr* bad = nullptr;
  return pool ? ibv_post_srq_recv(pool.get(), &request, &bad) : ibv_post_recv(pair.get(), &request, &bad);
}

int Side::post(ibv_send_wr request, std::vector<ibv_sge> segments) {
  request.sg_list = segments.data();
  request.num_sge = static_cast<int>(segments.size());
  ibv_send_wr* bad = nullptr;
  return ibv_post_send(pair.get(), &request, &bad);
}

int Side::send(std::uint64_t id, std::size_t offset, std::uint32_t length, unsigned flags) {
  ibv_send_wr request{};
  request.wr_id = id;
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED | flags;
  return post(request, {segment(offset, length)});
}

int Side::write(std::uint64_t id, std::size_t offset, std::uint32_t length, const Address& peer,
                std::size_t remote_offset) {
  ibv_send_wr request{};
  request.wr_id = id;
  request.opcode = IBV_WR_RDMA_WRITE;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.rdma = {peer.memory + remote_offset, peer.key};
  return post(request, {segment(offset, length)});
}

int Side::read(std::uint64_t id, std::size_t offset, std::uint32_t length, const Address& peer,
               std::size_t remote_offset) {
  ibv_send_wr request{};
  request.wr_id = id;
  request.opcode = IBV_WR_RDMA_READ;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.rdma = {peer.memory + remote_offset, peer.key};
  return post(request, {segment(offset, length)});
}

std::optional<ibv_wc> Side::next(Clock::duration time) { return poll_until(sends.get(), time); }

std::optional<ibv_wc> Side::next_received(Clock::duration time) { return poll_until(receives.get(), time); }

std::optional<ibv_event_type> Side::next_event(Clock::duration time) {
  pollfd waiting{context->async_fd, POLLIN, 0};
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
  if (::poll(&waiting, 1, static_cast<int>(milliseconds)) != 1) return std::nullopt;
  ibv_async_event event{};
  if (ibv_get_async_event(context.get(), &event) != 0) return std::nullopt;
  ibv_ack_async_event(&event);
  return event.event_type;
}

Link::Link(const SideOptions& first, const SideOptions& second, const ConnectOptions& connecting)
    : a(first), b(second) {
  a.connect(b.address(), connecting);
  b.connect(a.address(), connecting);
}

std::optional<ibv_wc> poll_until(ibv_cq* queue, Clock::duration time) {
  const auto end = Clock::now() + time;
  ibv_wc entry{};
  do {
    const int count = ibv_poll_cq(queue, 1, &entry);
    EXPECT_GE(count, 0);
    if (count == 1) return entry;
    std::this_thread::yield();
  } while (Clock::now() < end);
  return std::nullopt;
}

bool eventually(const std::function<bool()>& condition, Clock::duration time) {
  const auto end = Clock::now() + time;
  while (!condition()) {
    if (Clock::now() >= end) return condition();
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

}  // namespace fakeverbs_test
