// Sketch: a verbs endpoint (see verbs_sketch.hpp). Included once, by verbs_sketch.cpp.
#pragma once

#include <algorithm>
#include <random>

#include "verbs_sketch.hpp"

namespace weft::sketch::verbs {

inline Endpoint::Endpoint(Context& owner, const provider::EndpointRequest& request)
    : owner_(owner),
      request_(request),
      limits_(owner.attributes().limits),
      send_queue_(static_cast<CompletionQueue*>(request.send_queue)),
      receive_queue_(static_cast<CompletionQueue*>(request.receive_queue)),
      shared_(static_cast<ReceiveQueue*>(request.shared_receives)),
      hardware_depth_(request.send_depth + 8),  // ours: tails, probes, pieces
      signal_every_(std::max(1u, std::min(64u, request.send_depth / 4))),
      sends_(request.send_depth) {
  limits_.send_depth = request.send_depth;
  limits_.receive_depth = request.receive_depth;
  first_packet_ = std::random_device{}() & 0xffffff;
  const std::lock_guard guard(owner.lock);
  send_hardware_ = send_queue_->attach(this, hardware_depth_);
  receive_hardware_ = receive_queue_->attach(this, shared_ != nullptr ? 0 : request.receive_depth);
  ibv_qp_init_attr wanted{};
  wanted.qp_context = this;
  wanted.send_cq = send_hardware_;
  wanted.recv_cq = receive_hardware_;
  wanted.srq = shared_ != nullptr ? shared_->native() : nullptr;
  wanted.cap = {hardware_depth_, shared_ != nullptr ? 0 : request.receive_depth, segments_per_request,
                segments_per_request, request.max_inline};
  wanted.qp_type = IBV_QPT_RC;
  // The wish shrinks until the device agrees.
  while (!(pair_ = PairHandle{ibv_create_qp((owner.parent ? owner.parent : owner.domain).get(), &wanted)}) &&
         wanted.cap.max_inline_data > 0)
    wanted.cap.max_inline_data /= 2;
  if (!pair_) throw Error(Status::resource_limit, std::string("ibv_create_qp: ") + std::strerror(errno));
  hardware_inline_ = wanted.cap.max_inline_data;
  limits_.max_inline = std::max({32u, hardware_inline_, std::min(request.max_inline, 256u)});
  inline_bytes_.resize(std::size_t{limits_.max_inline} * (sends_.size() + 1));
  inline_region_.reset(ibv_reg_mr(owner.domain.get(), inline_bytes_.data(), inline_bytes_.size(), 0));
  // From INIT on receives can be posted (CON-5). Rights are the region's own (MEM-1).
  ibv_qp_attr attributes{};
  attributes.qp_access_flags =
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  attributes.port_num = owner.port;
  change_state(IBV_QPS_INIT, attributes, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  number_ = pair_->qp_num;
  owner.by_pair_number.insert_or_assign(number_, this);
}

inline Endpoint::~Endpoint() {
  const std::lock_guard guard(owner_.lock);
  if (const auto found = owner_.by_pair_number.find(number_);
      found != owner_.by_pair_number.end() && found->second == this)
    owner_.by_pair_number.erase(found);
  if (owner_.in_child) static_cast<void>(pair_.release()), static_cast<void>(inline_region_.release());
  pair_.reset();
  send_queue_->detach(this, send_hardware_, hardware_depth_);
  receive_queue_->detach(this, receive_hardware_, shared_ != nullptr ? 0 : request_.receive_depth);
}

inline void Endpoint::change_state(ibv_qp_state state, ibv_qp_attr attributes, int mask) {
  attributes.qp_state = state;
  if (const int code = ibv_modify_qp(pair_.get(), &attributes, mask | IBV_QP_STATE); code != 0)
    throw Error(code == ETIMEDOUT || code == ENETUNREACH ? Status::unreachable : Status::system_error,
                "moving the queue pair to state " + std::to_string(state) + ": " + std::strerror(code));
}

inline std::vector<std::byte> Endpoint::blob(const provider::PathAddresses& path) {
  gid_index_ = owner_.gid_index(path.local, gid_);  // throws `unreachable`: another device owns that address
  Blob blob{.pair_number = pair_->qp_num,
            .first_packet = first_packet_,
            .gid = {},
            .lid = owner_.port_state.lid,
            .mtu = static_cast<std::uint8_t>(owner_.port_state.active_mtu),
            .gid_is_needed = owner_.port_state.link_layer == IBV_LINK_LAYER_ETHERNET,
            .reads_as_initiator = static_cast<std::uint32_t>(owner_.limits.max_qp_init_rd_atom),
            .reads_as_responder = static_cast<std::uint32_t>(owner_.limits.max_qp_rd_atom),
            .flush_address = reinterpret_cast<std::uintptr_t>(&owner_.scratch[0]),
            .flush_key = owner_.scratch_region->rkey,
            .reserved = 0};
  std::memcpy(blob.gid.data(), gid_.raw, sizeof gid_.raw);
  const auto bytes = std::as_bytes(std::span{&blob, 1});
  return {bytes.begin(), bytes.end()};
}

// Both ends are ready to receive before either core says GO: nothing is lost, and no round trip is needed.
inline bool Endpoint::establish(const provider::PeerParameters& peer) {
  const std::lock_guard guard(owner_.lock);
  if (peer.blob.size() != sizeof peer_)
    throw Error(Status::protocol, "the peer's verbs blob has the wrong size");
  std::memcpy(&peer_, peer.blob.data(), sizeof peer_);
  if (peer_.mtu < IBV_MTU_256 || peer_.mtu > IBV_MTU_4096 || peer_.pair_number > 0xffffff ||
      peer_.first_packet > 0xffffff)
    throw Error(Status::protocol, "the peer's verbs blob is out of range");
  limits_ = peer.limits;
  const auto reads = [](std::uint32_t here, std::uint32_t there) {
    return static_cast<std::uint8_t>(std::min({here, there, 128u}));
  };
  const std::uint8_t outgoing =
      reads(static_cast<std::uint32_t>(owner_.limits.max_qp_init_rd_atom), peer_.reads_as_responder);
  const std::uint8_t incoming =
      reads(static_cast<std::uint32_t>(owner_.limits.max_qp_rd_atom), peer_.reads_as_initiator);
  limits_.max_outstanding_reads = outgoing;
  ibv_qp_attr attributes{};
  attributes.path_mtu = std::min(owner_.port_state.active_mtu, static_cast<ibv_mtu>(peer_.mtu));
  attributes.rq_psn = peer_.first_packet;
  attributes.dest_qp_num = peer_.pair_number;
  attributes.max_dest_rd_atomic = incoming;
  attributes.min_rnr_timer = 12;  // 0.64 ms; 0 would mean 655 ms
  attributes.ah_attr.dlid = peer_.lid;
  attributes.ah_attr.port_num = owner_.port;
  attributes.ah_attr.is_global = peer_.gid_is_needed;
  std::memcpy(attributes.ah_attr.grh.dgid.raw, peer_.gid.data(), peer_.gid.size());
  attributes.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(gid_index_);
  attributes.ah_attr.grh.hop_limit = 64;
  change_state(IBV_QPS_RTR, attributes,
               IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                   IBV_QP_MIN_RNR_TIMER);
  // 4.096 us << timer, eight times, stays below peer_timeout (ERR-3).
  const auto patience = static_cast<std::uint64_t>(std::chrono::nanoseconds(owner_.peer_timeout).count());
  while (attributes.timeout < 20 && (4096ull << (attributes.timeout + 1)) * 8 < patience)
    ++attributes.timeout;
  attributes.sq_psn = first_packet_;
  attributes.max_rd_atomic = outgoing;
  attributes.retry_cnt = 7;
  attributes.rnr_retry = 7;  // OPS-3: a receiver may be late for ever
  change_state(
      IBV_QPS_RTS, attributes,
      IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
  return true;
}

inline void Endpoint::notify() noexcept {
  send_queue_->make_readable();
  if (receive_queue_ != send_queue_) receive_queue_->make_readable();
}

inline void Endpoint::go_up() noexcept {
  const std::lock_guard guard(owner_.lock);
  up_ = was_up_ = connect_report_ = true;
  last_traffic_ = Context::Clock::now();
  notify();
}

inline bool Endpoint::withdraw_connect_report() noexcept {
  const std::lock_guard guard(owner_.lock);
  return std::exchange(connect_report_, false);
}

// OPS-1, OPS-5 to OPS-9, MEM-2, MEM-4: everything that can be known here is refused here.
inline Status Endpoint::check(const WorkRequest& request, SendRecord& record) noexcept {
  record.context = request.context;
  record.operand = request.operand;
  record.compare = request.compare;
  record.immediate = request.immediate;
  record.operation = request.operation;
  record.flags = request.flags;
  const bool into = request.operation == Operation::read || request.operation == Operation::fetch_add ||
                    request.operation == Operation::compare_swap;
  const bool atomic = into && request.operation != Operation::read;
  if (request.segments.size() > segments_per_request) return Status::too_big;
  if (request.operation == Operation::flush)
    return request.segments.empty() ? Status::ok : Status::invalid_argument;
  const bool is_inline = has(request.flags, Flags::inline_data);
  std::byte* copy = inline_bytes_.data() + accepted_ % (sends_.size() + 1) * limits_.max_inline;
  for (const Segment& segment : request.segments) {
    record.length += segment.length;
    if (is_inline && record.length > limits_.max_inline) return Status::too_big;
    if (segment.length == 0) continue;  // OPS-8
    const auto region = owner_.regions.find(segment.region);
    ibv_sge& place = record.segments[record.segment_count];
    if (is_inline && !into && segment.region == 0) {
      std::memcpy(copy, reinterpret_cast<const void*>(segment.offset), segment.length);  // OPS-6
      place = {reinterpret_cast<std::uintptr_t>(copy), static_cast<std::uint32_t>(segment.length),
               inline_region_->lkey};
      copy += segment.length;
    } else if (region == owner_.regions.end() ||
               !region->second->place(segment, into ? Access::local_write : Access::none, place)) {
      return Status::invalid_argument;
    }
    record.regions[record.segment_count++] = segment.region;
  }
  const bool message =
      request.operation == Operation::send || request.operation == Operation::write_with_immediate;
  if (record.length > (message ? limits_.max_message : limits_.max_transfer)) return Status::too_big;
  if (request.operation == Operation::send) return Status::ok;
  if (record.length == 0 && !atomic) return Status::ok;
  const auto found = imported_.find(request.remote.memory);
  if (found == imported_.end()) return Status::invalid_argument;
  const Key& key = found->second;
  const Access wanted = atomic ? Access::remote_atomic : into ? Access::remote_read : Access::remote_write;
  if (!has(static_cast<Access>(key.access), wanted) || request.remote.offset > key.length ||
      record.length > key.length - request.remote.offset)
    return Status::invalid_argument;
  record.remote_address = key.address + request.remote.offset;
  record.remote_key = key.native;
  return atomic && (record.length != 8 || record.remote_address % 8 != 0) ? Status::invalid_argument
                                                                          : Status::ok;
}

inline PostResult Endpoint::post(const WorkRequest* requests, std::size_t count) noexcept {
  const std::lock_guard guard(owner_.lock);
  std::size_t taken = 0;
  Status status = Status::ok;
  for (; taken < count; ++taken) {
    if (owner_.in_child || draining_ || failed_ || ending_) {
      status = Status::not_connected;
      break;
    }
    if (accepted_ - taken_ == sends_.size()) send_queue_->drive();
    // CMP-2: slots of unsignalled operations come back by themselves. (Signalled ones keep theirs until
    // taken; a real provider moves them to a ring of the queue.)
    while (taken_ != done_ && has(sent(taken_).flags, Flags::unsignalled)) ++taken_;
    SendRecord record;  // checked before the window: `again` must not hide what can never work
    if (accepted_ - taken_ == sends_.size() || !up_) status = Status::again;
    if (const Status fault = check(requests[taken], record); fault != Status::ok) status = fault;
    if (status == Status::ok && !has(record.flags, Flags::unsignalled) && !send_queue_->reserve(1))
      status = Status::again;
    if (status != Status::ok) break;
    sent(accepted_++) = record;
    messages_sent_ +=
        record.operation == Operation::send || record.operation == Operation::write_with_immediate;
  }
  push();
  owner_.work_begins();  // PRG-5, MEM-5: somebody confirms it although the program stays away
  return {status, taken};
}

inline bool Endpoint::build(ibv_send_wr& work, ibv_sge* segments) noexcept {
  SendRecord& record = sent(handed_);
  const bool reads = record.operation == Operation::read || record.operation == Operation::flush ||
                     record.operation == Operation::fetch_add || record.operation == Operation::compare_swap;
  if (serial_ - confirmed_ >= hardware_depth_ - 2) return false;                 // two are kept for tails
  if (reads && reads_in_flight_ >= limits_.max_outstanding_reads) return false;  // waits by itself
  const std::uint64_t piece =
      std::min<std::uint64_t>(record.length - record.moved, owner_.port_state.max_msg_sz);
  std::uint64_t skip = record.moved, left = piece;
  int used = 0;
  for (std::uint32_t i = 0; i < record.segment_count && left > 0; ++i) {
    const ibv_sge& whole = record.segments[i];
    if (skip >= whole.length) {
      skip -= whole.length;
      continue;
    }
    const auto here = static_cast<std::uint32_t>(std::min<std::uint64_t>(whole.length - skip, left));
    segments[used++] = {whole.addr + skip, here, whole.lkey};
    left -= here;
    skip = 0;
  }
  work = {};
  work.wr_id = ++serial_;
  work.sg_list = segments;
  work.num_sge = used;
  work.wr.rdma = {record.remote_address + record.moved, record.remote_key};
  switch (record.operation) {
    case Operation::send:
      work.opcode = has(record.flags, Flags::with_immediate) ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
      break;
    case Operation::write:
      work.opcode = IBV_WR_RDMA_WRITE;
      break;
    case Operation::write_with_immediate:
      work.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
      break;
    case Operation::read:
      work.opcode = IBV_WR_RDMA_READ;
      break;
    case Operation::flush:  // OPS-11: a read behind the writes, of the peer library's own bytes
      segments[0] = {reinterpret_cast<std::uintptr_t>(&owner_.scratch[1]), 8, owner_.scratch_region->lkey};
      work.num_sge = 1, work.opcode = IBV_WR_RDMA_READ, work.wr.rdma = {peer_.flush_address, peer_.flush_key};
      break;
    default:
      work.opcode =
          record.operation == Operation::fetch_add ? IBV_WR_ATOMIC_FETCH_AND_ADD : IBV_WR_ATOMIC_CMP_AND_SWP;
      work.wr.atomic = {record.remote_address,
                        record.operation == Operation::fetch_add ? record.operand : record.compare,
                        record.operand, record.remote_key};
  }
  work.imm_data = htobe32(record.immediate);  // OPS-4: host order on both ends
  if (!reads && record.length <= hardware_inline_) work.send_flags |= IBV_SEND_INLINE;
  if (has(record.flags, Flags::fence)) work.send_flags |= IBV_SEND_FENCE;  // ORD-4
  record.moved += piece;
  record.reads += reads, reads_in_flight_ += reads;
  const bool last = record.moved == record.length;
  if ((last && !has(record.flags, Flags::unsignalled)) || ++unsignalled_run_ >= signal_every_) {
    work.send_flags |= IBV_SEND_SIGNALED;
    unsignalled_run_ = 0;
    ++owner_.signals;
  }
  record.last_serial = serial_;
  if (last) ++handed_;
  return true;
}

inline void Endpoint::push() noexcept {
  std::array<ibv_send_wr, chain_length> works;
  std::array<std::array<ibv_sge, segments_per_request>, chain_length> segments;
  while (handed_ != accepted_ && !failed_ && !ending_) {
    std::size_t count = 0;
    while (count < chain_length && handed_ != accepted_ && build(works[count], segments[count].data()))
      ++count;
    if (count == 0) return;
    for (std::size_t i = 1; i < count; ++i) works[i - 1].next = &works[i];
    ibv_send_wr* refused = nullptr;
    ++owner_.doorbells;  // OPS-2: one for the chain
    if (const int code = ibv_post_send(pair_.get(), works.data(), &refused); code != 0)
      return lost(Status::aborted, code, "ibv_post_send refused a request that was counted");
    last_traffic_ = Context::Clock::now();
  }
}

}  // namespace weft::sketch::verbs
