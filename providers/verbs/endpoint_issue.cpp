// Handing work requests to the device: chains with one call each, pieces of what is held, and the library's
// own empty writes.
#include <algorithm>
#include <cerrno>

#include "context.hpp"
#include "endpoint.hpp"
#include "errors.hpp"

namespace weft::verbs {

namespace {

void add_one_by_one(ibv_qp_ex* pair, const ibv_send_wr& work) noexcept {
  pair->wr_id = work.wr_id;
  // With the flag for inline: Soft-RoCE's library does not set it where the bytes are given, adapters ignore
  // it.
  pair->wr_flags = work.send_flags;
  const auto& rdma = work.wr.rdma;
  switch (work.opcode) {
    case IBV_WR_SEND:
      ibv_wr_send(pair);
      break;
    case IBV_WR_SEND_WITH_IMM:
      ibv_wr_send_imm(pair, work.imm_data);
      break;
    case IBV_WR_RDMA_WRITE:
      ibv_wr_rdma_write(pair, rdma.rkey, rdma.remote_addr);
      break;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      ibv_wr_rdma_write_imm(pair, rdma.rkey, rdma.remote_addr, work.imm_data);
      break;
    case IBV_WR_RDMA_READ:
      ibv_wr_rdma_read(pair, rdma.rkey, rdma.remote_addr);
      break;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      ibv_wr_atomic_fetch_add(pair, work.wr.atomic.rkey, work.wr.atomic.remote_addr,
                              work.wr.atomic.compare_add);
      break;
    default:
      ibv_wr_atomic_cmp_swp(pair, work.wr.atomic.rkey, work.wr.atomic.remote_addr, work.wr.atomic.compare_add,
                            work.wr.atomic.swap);
      break;
  }
  const auto count = static_cast<std::size_t>(work.num_sge);
  if ((work.send_flags & IBV_SEND_INLINE) == 0) {
    if (count == 1) {
      ibv_wr_set_sge(pair, work.sg_list->lkey, work.sg_list->addr, work.sg_list->length);
    } else {
      ibv_wr_set_sge_list(pair, count, work.sg_list);
    }
    return;
  }
  if (count == 1) {
    ibv_wr_set_inline_data(pair, reinterpret_cast<void*>(work.sg_list->addr), work.sg_list->length);
    return;
  }
  std::array<ibv_data_buf, segments_per_request> pieces;
  for (std::size_t i = 0; i < count; ++i)
    pieces[i] = {reinterpret_cast<void*>(work.sg_list[i].addr), work.sg_list[i].length};
  ibv_wr_set_inline_data_list(pair, count, pieces.data());
}

}  // namespace

int Endpoint::post_extended(ibv_qp* pair, ibv_send_wr* first, ibv_send_wr** refused) noexcept {
  ibv_qp_ex* const extended = ibv_qp_to_qp_ex(pair);
  ibv_wr_start(extended);
  for (const ibv_send_wr* work = first; work != nullptr; work = work->next) add_one_by_one(extended, *work);
  const int code = ibv_wr_complete(extended);
  if (code != 0) *refused = first;  // all or nothing
  return code;
}

void Endpoint::ring() noexcept {
  Chain& chain = group_.chain();
  if (chain.empty()) return;
  Counts& counts = group_.counts();
  const std::size_t count = chain.count();
  int code = 0;
  const std::size_t taken = chain.hand_over(
      [this](ibv_send_wr* first, ibv_send_wr** refused) { return post_chain(first, refused); }, code);
  counts.add(Count::doorbells);
  counts.add(Count::work_requests, taken);
  if (code != 0) [[unlikely]]
    chain.signals -= keep_refused(&chain.at(taken), count - taken);
  counts.add(Count::signals, chain.signals);
  chain.signals = 0;
  if (code != 0) [[unlikely]]
    refused(code, "a request");
}

// A device says ENOMEM of a full queue. Ours is counted and never full, so what it says is passing: the
// helper tries again. Anything else is the end.
void Endpoint::refused(int code, const char* what) noexcept {
  group_.counts().add(Count::refused_doorbells);
  if (code == ENOMEM || code == EAGAIN) {
    // The helper itself comes again in a moment; asking it here would make it come at once, and again.
    if (!group_.helped()) context_.request_service();
    return;
  }
  fail(Status::aborted, 0, code,
       "the device " + context_.fabric().port().name + " refused " + what + ": " + text_of(code));
}

// The device did not take the last requests, of which this is the first. Each is a whole operation, and was
// accepted: they wait as held ones do. Returns how many of them were signalled.
std::uint32_t Endpoint::keep_refused(const ibv_send_wr* first, std::size_t count) noexcept {
  held_ += count;
  serial_ -= static_cast<std::uint32_t>(count);
  std::uint32_t signals = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if ((first[i].send_flags & IBV_SEND_SIGNALED) != 0) ++signals;
    plan_for(issued() + i, first[i], first[i].sg_list);
  }
  signals_.make_next();
  set_care(true);
  credit_ = 0;
  group_.counts().add(Count::held, count);
  return signals;
}

// Keeps what does not leave at once. `work` has all but the bytes' places, which may be longer than one of
// the device's.
void Endpoint::hold(const WorkRequest& request, const ibv_send_wr& work, const ibv_sge* places) noexcept {
  ring();  // what is before it; `work` and `places` stay as they are
  const std::uint64_t position = sends_.tail++;
  ++held_;
  credit_ = 0;
  plan_for(position, work, places);
  Plan& plan = plans_[position & inline_mask_];
  std::size_t next = 0;
  for (std::uint32_t i = 0; i < plan.part_count; ++i) {
    if (plan.parts[i].length != longest_place) continue;  // or more than a place can say
    while (request.segments[next].length < longest_place) ++next;
    plan.parts[i].length = request.segments[next++].length;
  }
  set_care(true);
  group_.counts().add(Count::held);
  push_held();
}

void Endpoint::plan_for(std::uint64_t position, const ibv_send_wr& work, const ibv_sge* places) noexcept {
  SendRecord& record = sends_[position];
  Plan& plan = plans_[position & inline_mask_];
  plan.moved = 0;
  plan.part_count = static_cast<std::uint32_t>(work.num_sge);
  for (std::uint32_t i = 0; i < plan.part_count; ++i)
    plan.parts[i] = {places[i].addr, places[i].length, places[i].lkey};
  if ((work.send_flags & IBV_SEND_INLINE) != 0) {
    // The bytes are the caller's again when post returns (OPS-6).
    std::byte* const copy = inline_place(position);
    std::size_t filled = 0;
    for (std::uint32_t i = 0; i < plan.part_count; ++i) {
      std::copy_n(reinterpret_cast<const std::byte*>(plan.parts[i].address), plan.parts[i].length,
                  copy + filled);
      filled += plan.parts[i].length;
    }
    plan.parts[0] = {reinterpret_cast<std::uint64_t>(copy), filled, 0};
    plan.part_count = 1;
  }
  plan.opcode = work.opcode;
  plan.flags = work.send_flags & ~static_cast<unsigned>(IBV_SEND_SIGNALED);
  plan.immediate = work.imm_data;
  plan.asked = record.kind.signalled;
  if (work.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || work.opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
    plan.remote_address = work.wr.atomic.remote_addr;
    plan.remote_key = work.wr.atomic.rkey;
    plan.operand = work.wr.atomic.compare_add;
    plan.compare = work.wr.atomic.swap;
  } else {
    plan.remote_address = work.wr.rdma.remote_addr;
    plan.remote_key = work.wr.rdma.rkey;
  }
  record.kind.planned = true;
  plan.requests = 0;
}

// The next work request of a held operation; true when the operation is handed over whole.
bool Endpoint::build_piece(SendRecord& record, Plan& plan) noexcept {
  Chain& chain = group_.chain();
  ibv_send_wr& work = chain.next();
  ibv_sge* const places = chain.places();
  const std::uint64_t start = plan.moved;
  std::uint64_t left = std::min<std::uint64_t>(record.length - start, context_.longest_piece());
  if (record.kind.operation == Operation::flush) left = sizeof(std::uint64_t);
  std::uint64_t skip = start;
  std::uint32_t used = 0;
  for (std::uint32_t i = 0; i < plan.part_count && left != 0 && used < context_.device_segments(); ++i) {
    const Plan::Part& part = plan.parts[i];
    if (skip >= part.length) {
      skip -= part.length;
      continue;
    }
    const std::uint64_t here = std::min(part.length - skip, left);
    places[used++] = {part.address + skip, static_cast<std::uint32_t>(here), part.key};
    left -= here;
    plan.moved += here;
    skip = 0;
  }
  const bool whole = record.kind.operation == Operation::flush || plan.moved == record.length;
  work.opcode = plan.opcode;
  work.imm_data = plan.immediate;
  work.num_sge = static_cast<int>(used);
  if (work.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || work.opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
    work.wr.atomic.remote_addr = plan.remote_address;
    work.wr.atomic.rkey = plan.remote_key;
    work.wr.atomic.compare_add = plan.operand;
    work.wr.atomic.swap = plan.compare;
  } else {
    work.wr.rdma.remote_addr = plan.remote_address + start;
    work.wr.rdma.rkey = plan.remote_key;
  }
  unsigned flags = plan.flags;
  if (start != 0)
    flags &= ~static_cast<unsigned>(IBV_SEND_FENCE);  // the first piece waited for all before it
  ++plan.requests;
  record.last_serial = ++serial_;
  work.wr_id = Tag::of(place_.slot, serial_);
  if (signals_.next(whole && plan.asked)) {
    flags |= IBV_SEND_SIGNALED;
    ++chain.signals;
  }
  work.send_flags = flags;
  chain.take();
  return whole;
}

void Endpoint::push_held() noexcept {
  if (held_ == 0 || (state_ != State::up && state_ != State::closing)) return;
  Chain& chain = group_.chain();
  if (!chain.empty()) return;  // inside a post, which comes here again
  PiecesInChain pieces;
  while (held_ != 0 && in_device() + own_requests <= device_depth_) {
    if (chain.full() && !hand_over_pieces(pieces)) return;
    const std::uint64_t position = issued();
    SendRecord& record = sends_[position];
    Plan& plan = plans_[position & inline_mask_];
    pieces[chain.count()] = {position, plan.moved, plan.requests};
    if (build_piece(record, plan)) --held_;
  }
  if (!chain.empty() && !hand_over_pieces(pieces)) return;
  if (held_ == 0 && state_ == State::up && !own_open_) set_care(false);
}

// False when the device did not take all of them: those are as if never built.
bool Endpoint::hand_over_pieces(const PiecesInChain& pieces) noexcept {
  Chain& chain = group_.chain();
  Counts& counts = group_.counts();
  int code = 0;
  const std::size_t count = chain.count();
  const std::size_t taken = chain.hand_over(
      [this](ibv_send_wr* first, ibv_send_wr** refused) { return post_chain(first, refused); }, code);
  for (std::size_t i = count; i-- > taken;) {
    const PieceInChain& piece = pieces[i];
    if ((chain.at(i).send_flags & IBV_SEND_SIGNALED) != 0) --chain.signals;
    Plan& plan = plans_[piece.position & inline_mask_];
    plan.requests = piece.requests;
    plan.moved = piece.moved;
    // Right for a piece that follows another; else it is not looked at.
    sends_[piece.position].last_serial = --serial_;
    held_ = sends_.tail - piece.position;
  }
  counts.add(Count::doorbells);
  counts.add(Count::work_requests, taken);
  counts.add(Count::signals, chain.signals);
  chain.signals = 0;
  if (taken == count) return true;
  signals_.make_next();
  refused(code, "a piece of a transfer");
  return false;
}

// An empty write: no bytes, no key. Its acknowledgement confirms what is before it, or that the path works.
bool Endpoint::post_own(bool probe) noexcept {
  if (own_open_ || in_device() >= device_depth_) return false;
  ibv_send_wr work{};
  ibv_send_wr* refused = nullptr;
  work.wr_id = Tag::of(place_.slot, serial_ + 1);
  work.opcode = IBV_WR_RDMA_WRITE;
  work.send_flags = IBV_SEND_SIGNALED;
  Counts& counts = group_.counts();
  counts.add(Count::doorbells);
  if (post_chain(&work, &refused) != 0) {
    counts.add(Count::refused_doorbells);
    return false;
  }
  counts.add(Count::work_requests);
  counts.add(Count::signals);
  counts.add(probe ? Count::probes : Count::tails);
  own_serial_ = ++serial_;
  own_open_ = true;
  set_care(true);
  static_cast<void>(signals_.next(true));
  return true;
}

}  // namespace weft::verbs
