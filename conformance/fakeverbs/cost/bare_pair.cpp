#include "bare_pair.hpp"

#include <stdexcept>
#include <string>

namespace fakeverbs_cost {
namespace {

void must(bool condition, const char* what) {
  if (!condition) throw std::runtime_error(std::string("bare verbs: ") + what);
}

ibv_context* open_first() {
  int count = 0;
  ibv_device** const list = ibv_get_device_list(&count);
  must(list != nullptr && count > 0, "there is no device");
  ibv_context* const context = ibv_open_device(list[0]);
  ibv_free_device_list(list);
  return context;
}

}  // namespace

BarePair::BarePair() : memory_(8192), context_(open_first()) {
  must(context_ != nullptr, "the device does not open");
  domain_.reset(ibv_alloc_pd(context_.get()));
  must(domain_ != nullptr, "no protection domain");
  region_.reset(ibv_reg_mr(domain_.get(), memory_.data(), memory_.size(),
                           IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
  queue_.reset(ibv_create_cq(context_.get(), 4 * depth, nullptr, nullptr, 0));
  must(region_ != nullptr && queue_ != nullptr, "no region or no completion queue");
  ibv_qp_init_attr attributes{};
  attributes.send_cq = attributes.recv_cq = queue_.get();
  attributes.cap = {.max_send_wr = depth,
                    .max_recv_wr = depth,
                    .max_send_sge = 4,
                    .max_recv_sge = 4,
                    .max_inline_data = 64};
  attributes.qp_type = IBV_QPT_RC;
  pair_.reset(ibv_create_qp(domain_.get(), &attributes));
  must(pair_ != nullptr, "no queue pair");
  connect();
  for (std::size_t i = 0; i < longest_chain; ++i) {
    requests_[i].sg_list = &places_[i];
    requests_[i].num_sge = 1;
  }
}

void BarePair::connect() {
  ibv_gid gid{};
  must(ibv_query_gid(context_.get(), 1, 1, &gid) == 0, "no address");
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = 1;
  attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  must(ibv_modify_qp(pair_.get(), &attributes,
                     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0,
       "INIT refused");
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = IBV_MTU_1024;
  attributes.dest_qp_num = pair_->qp_num;
  attributes.max_dest_rd_atomic = 1;
  attributes.min_rnr_timer = 1;
  attributes.ah_attr.is_global = 1;
  attributes.ah_attr.port_num = 1;
  attributes.ah_attr.grh.dgid = gid;
  attributes.ah_attr.grh.hop_limit = 64;
  attributes.ah_attr.grh.sgid_index = 1;
  must(ibv_modify_qp(pair_.get(), &attributes,
                     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
       "RTR refused");
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = 14;
  attributes.retry_cnt = attributes.rnr_retry = 7;
  attributes.max_rd_atomic = 1;
  must(ibv_modify_qp(pair_.get(), &attributes,
                     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                         IBV_QP_MAX_QP_RD_ATOMIC) == 0,
       "RTS refused");
}

void BarePair::fill(ibv_send_wr& request, ibv_sge& place, Work work, bool signalled) {
  const bool small = work != Work::write_4096;
  place = {reinterpret_cast<std::uint64_t>(memory_.data()), small ? 8U : 4096U, region_->lkey};
  request.wr_id = next_++;
  request.opcode = work == Work::send_8 ? IBV_WR_SEND : IBV_WR_RDMA_WRITE;
  request.send_flags =
      (small ? static_cast<unsigned>(IBV_SEND_INLINE) : 0U) |
      (signalled || next_ % signal_every == 0 ? static_cast<unsigned>(IBV_SEND_SIGNALED) : 0U);
  request.wr.rdma.remote_addr = place.addr;
  request.wr.rdma.rkey = region_->rkey;
}

void BarePair::post(Work work, bool signalled) {
  ibv_send_wr* refused = nullptr;
  ibv_send_wr& request = requests_.front();
  fill(request, places_.front(), work, signalled);
  request.next = nullptr;
  must(ibv_post_send(pair_.get(), &request, &refused) == 0, "a request was refused");
}

void BarePair::post_chain(Work work) {
  ibv_send_wr* refused = nullptr;
  for (std::size_t i = 0; i < longest_chain; ++i) {
    fill(requests_[i], places_[i], work, false);
    requests_[i].next = i + 1 < longest_chain ? &requests_[i + 1] : nullptr;
  }
  must(ibv_post_send(pair_.get(), requests_.data(), &refused) == 0, "a chain was refused");
}

std::size_t BarePair::poll(int room) {
  const int count = ibv_poll_cq(queue_.get(), room, entries_.data());
  must(count >= 0, "the completion queue is broken");
  for (int i = 0; i < count; ++i)
    must(entries_[static_cast<std::size_t>(i)].status == IBV_WC_SUCCESS, "a request failed");
  return static_cast<std::size_t>(count);
}

}  // namespace fakeverbs_cost
