// What a request does at its target, under the lock of the target's queue pair.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "faults.hpp"
#include "memory_copy.hpp"
#include "queue_pair.hpp"

namespace fakeverbs {
namespace {

class Unlock {
 public:
  explicit Unlock(OwnerLock& lock) : lock_(lock) {}
  Unlock(const Unlock&) = delete;
  Unlock& operator=(const Unlock&) = delete;
  ~Unlock() { lock_.unlock(); }

 private:
  OwnerLock& lock_;
};

void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

bool carries_immediate(std::uint32_t opcode) {
  return opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

}  // namespace

bool QueuePair::locate_local(const SendRequest& request, std::uint32_t rights, std::uint64_t& bytes) {
  local_.clear();
  bytes = request.inline_bytes;
  if ((request.flags & IBV_SEND_INLINE) != 0) {
    if (bytes != 0) local_.push_back({sends_.inline_of(request.position), bytes});
    return true;
  }
  const ibv_sge* const segments = sends_.segments_of(request.position);
  for (std::uint32_t index = 0; index < request.segments; ++index) {
    const auto& piece = segments[index];
    if (piece.length == 0) continue;
    const std::uint64_t at = locate(adapter_.segment(), {.key = piece.lkey,
                                                         .address = piece.addr,
                                                         .length = piece.length,
                                                         .rights = rights,
                                                         .domain = shared_->domain,
                                                         .device = shared_->device});
    if (at == 0) return false;
    local_.push_back({pointer(at), piece.length});
    bytes += piece.length;
  }
  return true;
}

bool QueuePair::link() {
  const std::uint32_t number = attributes_.dest_qp_num;
  if (peer_ != nullptr && peer_->number.load() == number && peer_segment_->header().closed.load() == 0)
    return true;
  peer_ = nullptr;
  peer_segment_ = adapter_.segment_of(number);
  if (!peer_segment_) return false;
  SharedQueuePair& peer = peer_segment_->queue_pair(number % max_queue_pairs);
  if (peer.number.load() != number) return false;
  peer_ = &peer;
  return true;
}

QueuePair::Outcome QueuePair::execute(const SendRequest& request) {
  const bool fetches = request.opcode != IBV_WR_SEND && request.opcode != IBV_WR_SEND_WITH_IMM &&
                       request.opcode != IBV_WR_RDMA_WRITE && request.opcode != IBV_WR_RDMA_WRITE_WITH_IMM;
  std::uint64_t bytes = 0;
  if (!locate_local(request, fetches ? IBV_ACCESS_LOCAL_WRITE : 0, bytes)) {
    return {Outcome::done, IBV_WC_LOC_PROT_ERR};
  }
  if (bytes > faults().plan.limits.message_bytes) return {Outcome::done, IBV_WC_LOC_LEN_ERR};
  if (fetches && attributes_.max_rd_atomic == 0) return {Outcome::done, IBV_WC_LOC_QP_OP_ERR};
  if (context_.port_is_down() || faults().is_lost.load(std::memory_order_relaxed) || !link()) {
    return {Outcome::no_answer};
  }
  if (!peer_->lock.try_lock(adapter_.slot())) return {Outcome::busy};
  const Unlock unlock(peer_->lock);

  const std::uint32_t peer_state = peer_->state.load();
  const bool answers = peer_state == IBV_QPS_RTR || peer_state == IBV_QPS_RTS;
  const auto& gid = attributes_.ah_attr.grh.dgid.raw;
  if (!answers || peer_->number.load() != attributes_.dest_qp_num || peer_->peer_number != qp_base.qp_num ||
      peer_->expected_sequence != attributes_.sq_psn ||
      !std::equal(std::begin(gid), std::end(gid), peer_->own_gid.begin())) {
    peer_->peer_waits.store(1);
    return {Outcome::no_answer};
  }
  switch (request.opcode) {
    case IBV_WR_RDMA_WRITE:
      return execute_write(request, bytes);
    case IBV_WR_RDMA_READ:
      return execute_read(request, bytes);
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return execute_atomic(request, bytes);
    default:
      return execute_message(request, bytes);
  }
}

// The target's queue pair breaks too, and its program is told.
QueuePair::Outcome QueuePair::refused_by_peer(ibv_wc_status status, ibv_event_type event) {
  peer_->broken_by.store(static_cast<std::uint32_t>(event) + 1);
  peer_->state.store(IBV_QPS_ERR);
  peer_->attention.store(1);
  peer_segment_->ring();
  return {Outcome::done, status};
}

bool QueuePair::locate_remote(std::uint32_t key, std::uint64_t address, std::uint64_t bytes,
                              std::uint32_t rights) {
  remote_.clear();
  // A request without data needs no key.
  if (bytes == 0) return true;
  const std::uint64_t at = locate(*peer_segment_, {.key = key,
                                                   .address = address,
                                                   .length = bytes,
                                                   .rights = rights,
                                                   .domain = peer_->domain,
                                                   .device = peer_->device});
  if (at == 0) return false;
  remote_.push_back({pointer(at), bytes});
  return true;
}

QueuePair::Outcome QueuePair::execute_write(const SendRequest& request, std::uint64_t bytes) {
  if ((peer_->access & IBV_ACCESS_REMOTE_WRITE) == 0) {
    return refused_by_peer(IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
  }
  if (!locate_remote(request.key, request.remote_address, bytes, IBV_ACCESS_REMOTE_WRITE)) {
    return refused_by_peer(IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
  }
  if (faults().plan.relaxed_ms != 0 && bytes != 0) {
    if (deferred_.empty()) {
      deferred_until_ = Clock::now() + std::chrono::milliseconds(faults().plan.relaxed_ms);
      adapter_.wake_at(deferred_until_);
    }
    deferred_.add(request.remote_address, request.key, local_);
    return {};
  }
  switch (copy_out(local_, *peer_segment_, remote_)) {
    case Copied::all:
      return {};
    case Copied::peer_gone:
      return {Outcome::no_answer};
    case Copied::not_all:
      break;
  }
  return refused_by_peer(IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
}

// Under the lock of the target's queue pair. What no longer may be written is dropped: it was acknowledged,
// and the program has taken the region away.
void QueuePair::place_deferred() {
  for (auto& write : deferred_.take()) {
    if (!locate_remote(write.key, write.address, write.bytes.size(), IBV_ACCESS_REMOTE_WRITE)) continue;
    static_cast<void>(copy_out({{write.bytes.data(), write.bytes.size()}}, *peer_segment_, remote_));
  }
}

void QueuePair::place_deferred_alone() {
  if (deferred_.empty() || peer_ == nullptr) return;
  if (!peer_->lock.try_lock(adapter_.slot())) return;
  const Unlock unlock(peer_->lock);
  if (peer_->number.load() == attributes_.dest_qp_num) place_deferred();
}

QueuePair::Outcome QueuePair::execute_read(const SendRequest& request, std::uint64_t bytes) {
  if ((peer_->access & IBV_ACCESS_REMOTE_READ) == 0 || peer_->reads_allowed == 0) {
    return refused_by_peer(IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
  }
  if (bytes != 0) place_deferred();  // a read of nothing goes to no memory, and pushes nothing there
  if (!locate_remote(request.key, request.remote_address, bytes, IBV_ACCESS_REMOTE_READ)) {
    return refused_by_peer(IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
  }
  switch (copy_in(local_, *peer_segment_, remote_)) {
    case Copied::all:
      return {Outcome::done, IBV_WC_SUCCESS, static_cast<std::uint32_t>(bytes)};
    case Copied::peer_gone:
      return {Outcome::no_answer};
    case Copied::not_all:
      break;
  }
  return refused_by_peer(IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
}

QueuePair::Outcome QueuePair::execute_atomic(const SendRequest& request, std::uint64_t bytes) {
  constexpr std::uint64_t width = sizeof(std::uint64_t);
  if (bytes != width) return {Outcome::done, IBV_WC_LOC_LEN_ERR};
  if ((peer_->access & IBV_ACCESS_REMOTE_ATOMIC) == 0 || peer_->reads_allowed == 0 ||
      request.remote_address % width != 0) {
    return refused_by_peer(IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
  }
  place_deferred();
  if (!locate_remote(request.key, request.remote_address, width, IBV_ACCESS_REMOTE_ATOMIC)) {
    return refused_by_peer(IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
  }
  // Atomic towards other requests to that process, as IBV_ATOMIC_HCA promises, not towards its processors.
  auto& atomics = peer_segment_->header().atomics;
  if (!atomics.try_lock(adapter_.slot())) return {Outcome::busy};
  const Unlock unlock(atomics);
  std::uint64_t before = 0;
  const std::vector<iovec> own{{&before, width}};
  Copied copied = copy_in(own, *peer_segment_, remote_);
  std::uint64_t after = request.compare_add;
  if (request.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) after += before;
  if (request.opcode == IBV_WR_ATOMIC_CMP_AND_SWP)
    after = before == request.compare_add ? request.swap : before;
  if (copied == Copied::all) copied = copy_out({{&after, width}}, *peer_segment_, remote_);
  if (copied == Copied::peer_gone) return {Outcome::no_answer};
  if (copied == Copied::not_all) return refused_by_peer(IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
  static_cast<void>(copy_in(local_, adapter_.segment(), own));
  return {Outcome::done, IBV_WC_SUCCESS, width};
}

// Finds where a message's bytes go, and whether the receive has room for them.
QueuePair::Outcome QueuePair::locate_receive(std::uint64_t bytes) {
  remote_.clear();
  for (const auto& piece : receive_.segments) {
    if (bytes == 0) break;
    const std::uint64_t part = std::min<std::uint64_t>(piece.length, bytes);
    if (part == 0) continue;
    const std::uint64_t at = locate(*peer_segment_, {.key = piece.lkey,
                                                     .address = piece.addr,
                                                     .length = part,
                                                     .rights = IBV_ACCESS_LOCAL_WRITE,
                                                     .domain = peer_->domain,
                                                     .device = peer_->device});
    if (at == 0) return {Outcome::done, IBV_WC_LOC_PROT_ERR};
    remote_.push_back({pointer(at), part});
    bytes -= part;
  }
  return {Outcome::done, bytes == 0 ? IBV_WC_SUCCESS : IBV_WC_LOC_LEN_ERR};
}

// The oldest receive, taken at once from a shared queue, since others take from it too.
bool QueuePair::find_receive() {
  const ReceiveRing ring(*peer_segment_, peer_->receive_queue);
  while (ring.peek(receive_)) {
    if (peer_->uses_shared_queue == 0) return true;
    peer_->taken_wr_id = receive_.wr_id;
    peer_->taken.store(1);
    if (!ring.take(receive_)) {
      peer_->taken.store(0);
      continue;
    }
    auto& shared = ring.shared();
    std::uint32_t limit = shared.limit.load();
    if (limit != 0 && ring.size() < limit && shared.limit.compare_exchange_strong(limit, 0)) {
      shared.limit_reached.store(1);
      peer_segment_->ring();
    }
    return true;
  }
  return false;
}

QueuePair::Outcome QueuePair::execute_message(const SendRequest& request, std::uint64_t bytes) {
  const bool writes = request.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  if (writes && (peer_->access & IBV_ACCESS_REMOTE_WRITE) == 0) {
    return refused_by_peer(IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
  }
  if (writes && !locate_remote(request.key, request.remote_address, bytes, IBV_ACCESS_REMOTE_WRITE)) {
    return refused_by_peer(IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
  }
  if (!find_receive()) {
    // Asks to be woken, then looks again: one may have been posted meanwhile.
    peer_->peer_waits.store(1);
    peer_segment_->at<SharedReceiveQueue>(peer_->receive_queue).waited.store(1);
    if (!find_receive()) return {Outcome::receiver_not_ready, IBV_WC_SUCCESS, peer_->receiver_timer};
  }
  place_deferred();
  Outcome at_peer;
  if (writes) {
    static_cast<void>(locate_remote(request.key, request.remote_address, bytes, IBV_ACCESS_REMOTE_WRITE));
  } else {
    at_peer = locate_receive(bytes);
  }
  if (at_peer.status == IBV_WC_SUCCESS) {
    const Copied copied = copy_out(local_, *peer_segment_, remote_);
    if (copied == Copied::peer_gone) return {Outcome::no_answer};
    if (copied == Copied::not_all) at_peer.status = IBV_WC_LOC_PROT_ERR;
  }
  deliver_receive(request, at_peer.status, static_cast<std::uint32_t>(bytes));
  switch (at_peer.status) {
    case IBV_WC_SUCCESS:
      return {};
    case IBV_WC_LOC_LEN_ERR:
      return refused_by_peer(IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
    default:
      return refused_by_peer(IBV_WC_REM_OP_ERR, IBV_EVENT_QP_FATAL);
  }
}

void QueuePair::deliver_receive(const SendRequest& request, ibv_wc_status status, std::uint32_t bytes) {
  if (peer_->uses_shared_queue == 0) {
    // Taken before it is completed: the program may post the next one as soon as it sees the completion.
    peer_->taken_wr_id = receive_.wr_id;
    peer_->taken.store(1);
    static_cast<void>(ReceiveRing(*peer_segment_, peer_->receive_queue).take(receive_));
  }
  const bool writes = request.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  const bool immediate = carries_immediate(request.opcode);
  deliver(adapter_, *peer_segment_, peer_->completion_queue,
          {.wr_id = receive_.wr_id,
           .qp_num = peer_->number.load(),
           .status = status,
           .opcode = writes ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
           .byte_len = bytes,
           .imm_data = immediate ? request.imm_data : 0,
           .wc_flags = immediate ? std::uint32_t{IBV_WC_WITH_IMM} : 0u,
           .src_qp = qp_base.qp_num,
           .solicited = (request.flags & IBV_SEND_SOLICITED) != 0});
  peer_->taken.store(0);
}

}  // namespace fakeverbs
