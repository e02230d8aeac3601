// The states of a queue pair: made in INIT so that receives can be posted, then straight to RTS.
#include <algorithm>
#include <cerrno>

#include "common/wire.hpp"
#include "context.hpp"
#include "endpoint.hpp"
#include "errors.hpp"
#include "shared_receives.hpp"

namespace weft::verbs {

namespace {

constexpr std::uint8_t hop_limit = 64;

}  // namespace

void Endpoint::create_pair(std::uint32_t max_inline) {
  const Fabric& fabric = context_.fabric();
  ibv_qp_init_attr_ex wanted{};
  wanted.send_cq = wanted.recv_cq = place_.queue->get();
  wanted.srq = shared_ != nullptr ? shared_->native() : nullptr;
  wanted.cap.max_send_wr = device_depth_;
  wanted.cap.max_recv_wr = shared_ != nullptr ? 0 : limits_.receive_depth;
  wanted.cap.max_send_sge = wanted.cap.max_recv_sge = context_.device_segments();
  if (shared_ != nullptr) wanted.cap.max_recv_sge = 0;
  wanted.cap.max_inline_data = max_inline;
  wanted.qp_type = IBV_QPT_RC;
  wanted.pd = fabric.pair_domain();
  wanted.comp_mask = IBV_QP_INIT_ATTR_PD;
  ibv_qp_init_attr_ex one_by_one = wanted;
  one_by_one.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  one_by_one.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                              IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |
                              IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
  int code = 0;
  const auto attempt = [&](ibv_qp_init_attr_ex attributes) {
    errno = 0;
    pair_.reset(ibv_create_qp_ex(fabric.device(), &attributes));
    code = errno;
    if (pair_) wanted.cap = attributes.cap;
    return pair_ != nullptr;
  };
  // The wish for inline shrinks until the device agrees; what it then gives may be more. A device that was
  // full when asked has said nothing about what it can: others' pairs may go in between.
  std::uint64_t gone = context_.pairs_gone();
  while (true) {
    if (context_.extended() && attempt(one_by_one)) {
      post_send_ = &Endpoint::post_extended;
      break;
    }
    const bool was_full = code == ENOMEM;
    if (attempt(wanted)) {
      post_send_ = pair_->context->ops.post_send;
      if (context_.extended() && !was_full) context_.no_extended_posting();  // not asked for again
      break;
    }
    if (code == ENOMEM && context_.pairs_gone() != gone) {
      gone = context_.pairs_gone();
      wanted.cap.max_inline_data = one_by_one.cap.max_inline_data = max_inline;
      continue;
    }
    if (wanted.cap.max_inline_data == 0) {
      fail_call("cannot make a queue pair of " + std::to_string(device_depth_) + " sends and " +
                    std::to_string(wanted.cap.max_recv_wr) + " receives on device " + fabric.port().name,
                code,
                "the device has " + std::to_string(fabric.port().limits.max_qp) + " pairs of at most " +
                    std::to_string(fabric.port().limits.max_qp_wr) + " requests");
    }
    wanted.cap.max_inline_data /= 2;
    one_by_one.cap.max_inline_data = wanted.cap.max_inline_data;
  }
  // More than was wished for does not pay: the copy costs more than the device's reading of the bytes.
  device_inline_ = std::min(wanted.cap.max_inline_data, limits_.max_inline);
  number_ = pair_->qp_num;

  // Rights are each region's own (MEM-1).
  ibv_qp_attr attributes{};
  attributes.port_num = fabric.port().number;
  attributes.qp_access_flags =
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  change_state(IBV_QPS_INIT, attributes, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, "initialise");
}

// Bytes of inline operations that the device cannot copy at once: those that wait, or all above its own
// size, which then leave from here as from any registered memory (OPS-6).
void Endpoint::reserve_inline_bytes() {
  const std::uint64_t places = inline_mask_ + 1;
  const std::size_t size = places * limits_.max_inline;
  inline_bytes_ = std::make_unique_for_overwrite<std::byte[]>(size);
  if (device_inline_ >= limits_.max_inline) return;
  inline_region_.reset(ibv_reg_mr(context_.fabric().domain(), inline_bytes_.get(), size, 0));
  if (!inline_region_) fail_registration(size, errno);
}

void Endpoint::change_state(ibv_qp_state state, ibv_qp_attr& attributes, int mask, const char* step) const {
  attributes.qp_state = state;
  if (const int code = ibv_modify_qp(pair_.get(), &attributes, mask | IBV_QP_STATE); code != 0) {
    const bool path = code == ETIMEDOUT || code == EHOSTUNREACH || code == ENETUNREACH;
    throw Error(path ? Status::unreachable : Status::system_error,
                std::string("cannot ") + step + " a queue pair of device " + context_.fabric().port().name +
                    ": " + text_of(code) +
                    (path ? "; the peer's address does not answer in the device's network" : ""));
  }
}

std::vector<std::byte> Endpoint::blob(const provider::PathAddresses& path) {
  const Fabric& fabric = context_.fabric();
  gid_ = fabric.gid_for(path.local);
  Blob blob;
  blob.pair_number = number_;
  blob.first_packet = first_packet_;
  std::copy_n(reinterpret_cast<const std::byte*>(gid_.gid.raw), blob.gid.size(), blob.gid.begin());
  blob.lid = fabric.port().state.lid;
  blob.mtu = static_cast<std::uint8_t>(fabric.port().state.active_mtu);
  blob.ethernet = fabric.port().ethernet();
  blob.acknowledge = fabric.timers().acknowledge;
  blob.reads_out = context_.reads_out();
  blob.reads_in = context_.reads_in();
  blob.flush_address = fabric.readable_address();
  blob.flush_key = fabric.readable_key();
  std::vector<std::byte> bytes(Blob::size);
  blob.encode(std::span<std::byte, Blob::size>(bytes.data(), Blob::size));
  return bytes;
}

bool Endpoint::has_receives() const noexcept {
  return shared_ != nullptr ? shared_->posted() != 0 : !receives_.empty();
}

void Endpoint::expect_dry(bool dry) noexcept {
  if (dry_ == dry || !established_ || state_ > State::closing) return;
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.min_rnr_timer = dry ? Timers::receiver_dry(peer_.acknowledge) : Timers::receiver_not_ready;
  if (ibv_modify_qp(pair_.get(), &attributes, IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER) == 0) dry_ = dry;
  if (dry_ && shared_ != nullptr) shared_->note_dry();
}

// Both ends can receive before either core says GO, so nothing is lost and no round trip is needed.
bool Endpoint::establish(const provider::PeerParameters& peer) {
  const auto blob = Blob::decode(peer.blob);
  if (!blob) {
    throw Error(
        Status::protocol,
        "the peer's endpoint description is not one of this provider's; is the peer's weft of another "
        "version, or not weft at all?");
  }
  const Fabric& fabric = context_.fabric();
  if (blob->ethernet != fabric.port().ethernet()) {
    throw Error(Status::unreachable, std::string("the peer's device is on ") +
                                         (blob->ethernet ? "Ethernet (RoCE)" : "InfiniBand") +
                                         ", this side's device " + fabric.port().name + " is not");
  }
  const engine::HelperEntry entry(group_.gate());
  ibv_qp_attr attributes{};
  attributes.path_mtu = std::min(fabric.port().state.active_mtu, static_cast<ibv_mtu>(blob->mtu));
  attributes.rq_psn = blob->first_packet;
  attributes.dest_qp_num = blob->pair_number;
  attributes.max_dest_rd_atomic = static_cast<std::uint8_t>(std::min(context_.reads_in(), blob->reads_out));
  dry_ = fabric.port().software() && !has_receives();
  if (dry_ && shared_ != nullptr) shared_->note_dry();
  attributes.min_rnr_timer = dry_ ? Timers::receiver_dry(blob->acknowledge) : Timers::receiver_not_ready;
  attributes.ah_attr.dlid = blob->lid;
  attributes.ah_attr.sl = fabric.options().service_level;
  attributes.ah_attr.port_num = fabric.port().number;
  const bool across_subnets =
      !std::equal(gid_.gid.raw, gid_.gid.raw + 8, reinterpret_cast<const std::uint8_t*>(blob->gid.data()));
  attributes.ah_attr.is_global = fabric.port().ethernet() || across_subnets ? 1 : 0;
  std::copy(blob->gid.begin(), blob->gid.end(),
            reinterpret_cast<std::byte*>(attributes.ah_attr.grh.dgid.raw));
  attributes.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(gid_.gid_index);
  attributes.ah_attr.grh.hop_limit = hop_limit;
  attributes.ah_attr.grh.traffic_class = fabric.options().traffic_class;
  change_state(IBV_QPS_RTR, attributes,
               IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                   IBV_QP_MIN_RNR_TIMER,
               "make ready to receive");

  const std::uint32_t reads = std::min(context_.reads_out(), blob->reads_in);
  attributes = {};
  attributes.timeout = fabric.timers().acknowledge;
  attributes.retry_cnt = Timers::retries;
  attributes.rnr_retry = Timers::receiver_not_ready_for_ever;  // OPS-3
  attributes.sq_psn = first_packet_;
  attributes.max_rd_atomic = static_cast<std::uint8_t>(reads);
  change_state(IBV_QPS_RTS, attributes,
               IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
               "make ready to send");

  const Limits own = limits_;
  limits_ = peer.limits;
  limits_.max_inline = own.max_inline;
  limits_.max_segments = own.max_segments;
  limits_.max_message = std::min(limits_.max_message, own.max_message);
  limits_.send_depth = std::clamp(limits_.send_depth, std::uint32_t{1}, own.send_depth);
  limits_.max_outstanding_reads = reads;
  sends_.shrink_depth(limits_.send_depth);
  if (shared_ == nullptr) {
    limits_.receive_depth = std::clamp(limits_.receive_depth, std::uint32_t{1}, own.receive_depth);
    receives_.shrink_depth(limits_.receive_depth);
  } else {
    limits_.receive_depth = own.receive_depth;
  }
  const std::uint64_t piece = context_.longest_piece();
  // Send, write, write with immediate (never simple), read.
  simple_limits_ = {std::min(limits_.max_message, piece), piece, 0, piece};
  signals_ = SignalPlan(limits_.send_depth);
  early_.reserve(own.receive_depth);
  peer_ = *blob;
  established_ = true;
  return true;
}

}  // namespace weft::verbs
