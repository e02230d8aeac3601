// Taking requests: everything is checked before anything is changed (OPS-1, MEM-2, MEM-4).
#include <cstring>

#include "context.hpp"
#include "endpoint.hpp"
#include "segments.hpp"

namespace weft::engine {

namespace {

[[nodiscard]] constexpr bool is_known(Operation operation) noexcept { return operation <= Operation::flush; }
[[nodiscard]] constexpr bool is_atomic(Operation operation) noexcept {
  return operation == Operation::fetch_add || operation == Operation::compare_swap;
}
[[nodiscard]] constexpr bool is_message(Operation operation) noexcept {
  return operation == Operation::send || operation == Operation::write_with_immediate;
}
[[nodiscard]] constexpr bool is_write(Operation operation) noexcept {
  return operation == Operation::write || operation == Operation::write_with_immediate;
}

}  // namespace

Status Endpoint::check_remote(const WorkRequest& request, std::uint64_t length,
                              std::uint32_t& slot) const noexcept {
  if (length == 0) return Status::ok;  // needs no region (OPS-8)
  Access needed = Access::remote_atomic;
  if (is_write(request.operation)) needed = Access::remote_write;
  if (request.operation == Operation::read) needed = Access::remote_read;
  const Import* const import = import_for(request, length, needed);
  if (import == nullptr) return Status::invalid_argument;
  if (is_atomic(request.operation) && (request.remote.offset + import->misalignment) % 8 != 0) {
    return Status::invalid_argument;
  }
  slot = static_cast<std::uint32_t>(request.remote.memory);
  return Status::ok;
}

Status Endpoint::check(const WorkRequest& request, Checked& checked) const noexcept {
  if (!is_known(request.operation)) return Status::unsupported;
  if ((request.flags & known_flags) != request.flags) return Status::invalid_argument;
  const bool inline_data = has(request.flags, Flags::inline_data);
  const bool reads = request.operation == Operation::read || is_atomic(request.operation);
  if (inline_data && (reads || request.operation == Operation::flush)) return Status::invalid_argument;
  if (request.operation == Operation::flush) {
    return request.segments.empty() ? Status::ok : Status::invalid_argument;
  }
  checked.local_access = reads ? Access::local_write : Access::none;
  const Status status =
      check_segments(regions_, request.segments, checked.local_access, inline_data, checked.local);
  if (status != Status::ok) return status;
  const std::uint64_t length = checked.local.length;
  if (inline_data && length > inline_limit_) return Status::too_big;
  if (length > (is_message(request.operation) ? limits_.max_message : limits_.max_transfer))
    return Status::too_big;
  if (is_atomic(request.operation) && length != sizeof(std::uint64_t)) return Status::invalid_argument;
  return request.operation == Operation::send ? Status::ok : check_remote(request, length, checked.slot);
}

bool Endpoint::stash_inline(SendRecord& record) noexcept {
  if (record.length == 0) return true;
  Spill* spill = group_.spills().take();
  if (spill == nullptr) return false;
  std::size_t filled = 0;
  const Pieces pieces = record.pieces();
  for (std::uint32_t i = 0; i < pieces.count; ++i) {
    if (pieces.first[i].length == 0) continue;
    std::memcpy(spill->bytes + filled, pieces.first[i].address, pieces.first[i].length);
    filled += pieces.first[i].length;
  }
  if (record.piece_count > 1) group_.spills().give(record.spill);
  record.spill = spill;
  record.piece = {spill->bytes, record.length, 0};
  record.piece_count = 1;
  return true;
}

// Inline bytes are the caller's again when post returns: what could not leave is copied (OPS-6).
void Endpoint::stash_unframed(std::uint64_t from) noexcept {
  for (std::uint64_t at = from > framing_ ? from : framing_; at != sends_.tail; ++at) {
    SendRecord& record = sends_[at];
    if (has(record.flags, Flags::inline_data) && !stash_inline(record)) {
      fail(Status::aborted, 0, 0, "out of memory for the bytes of an inline operation");
      return;
    }
  }
}

Status Endpoint::take(const WorkRequest& request) noexcept {
  Checked checked;
  if (const Status status = check(request, checked); status != Status::ok) return status;
  if (sends_.full()) return Status::again;
  const bool signalled = !has(request.flags, Flags::unsignalled);
  if (signalled && !send_queue_.reserve()) return Status::again;
  SendRecord& record = sends_.back();
  if (!fill_pieces(regions_, group_.spills(), request.segments, checked.local_access,
                   has(request.flags, Flags::inline_data), checked.local.first, record)) {
    if (signalled) send_queue_.release(1);
    return Status::again;
  }
  record.context = request.context;
  record.length = checked.local.length;
  record.remote_offset = request.remote.offset;
  record.operand = request.operand;
  record.compare = request.compare;
  record.slot = checked.slot;
  record.immediate = request.immediate;
  record.operation = request.operation;
  record.flags = request.flags;
  record.answered = false;
  record.offered = false;
  record.number = 0;  // until framed
  ++sends_.tail;
  return Status::ok;
}

PostResult Endpoint::post(const WorkRequest* requests, std::size_t count) noexcept {
  prefetch();
  const Entry entry(group_.gate());
  PostResult result;
  if (state_ == State::preparing) [[unlikely]] {
    result.status = Status::again;
    return result;
  }
  if (state_ == State::closing || state_ == State::ended) [[unlikely]] {
    result.status = Status::not_connected;
    return result;
  }
  const std::uint64_t first = sends_.tail;
  if (framing_ == first && kept_ == nullptr && !has_control() && answers_head_ == answers_tail_ && moving() &&
      !strict_sends_ && !strict_writes_ && !offers_open_) {
    post_small(requests, count, result);
    if (framing_ == sends_.tail && (result.accepted == count || result.status != Status::ok)) return result;
  }
  while (result.accepted < count && result.status == Status::ok) {
    result.status = take(requests[result.accepted]);
    if (result.status == Status::ok) ++result.accepted;
  }
  if (framing_ != sends_.tail) {
    push_output();
    if (framing_ != sends_.tail) stash_unframed(first);
  }
  return result;
}

// Checks one receive and writes its record, in its place; the caller moves the tail over it.
Status Endpoint::take_receive(const ReceiveRequest& request) noexcept {
  CheckedSegments checked;
  if (const Status status = check_segments(regions_, request.segments, Access::local_write, false, checked);
      status != Status::ok) {
    return status;
  }
  if (receives_.full() || !group_.reserve()) return Status::again;
  ReceiveRecord& record = receives_.back();
  record.context = request.context;
  record.capacity = checked.length;
  if (!fill_pieces(regions_, group_.spills(), request.segments, Access::local_write, false, checked.first,
                   record)) {
    group_.release(1);
    return Status::again;
  }
  return Status::ok;
}

// A peer without grants left hears of new ones at once, unless the program has entries to take: then it will
// post again soon, and one update does for all of it (waits_for_more).
void Endpoint::tell_soon() noexcept {
  if (may_come_.tell_now || (may_come_.peer_is_dry() && !waits_for_more())) {
    push_output();
  } else if (!is_due_) {
    is_due_ = true;
    group_.note_due(*this);
  }
}

PostResult Endpoint::post_receives(const ReceiveRequest* requests, std::size_t count) noexcept {
  const Entry entry(group_.gate());
  PostResult result;
  if (shared_ != nullptr) {
    result.status = Status::unsupported;
    return result;
  }
  if (state_ == State::ended) [[unlikely]] {
    result.status = Status::not_connected;
    return result;
  }
  for (; result.accepted < count; ++result.accepted) {
    result.status = take_receive(requests[result.accepted]);
    if (result.status != Status::ok) break;
    ++receives_.tail;
    ++may_come_.granted;
  }
  if (result.accepted != 0 && state_ != State::preparing) {
    if (stored_ != nullptr) match_waiting();
    if (moving()) {
      if (update_due()) tell_soon();
      note_untold();
    }
  }
  return result;
}

bool Endpoint::local_operation_uses(std::uint64_t region) const noexcept {
  if (state_ == State::ended) return false;
  for (std::uint64_t at = sends_.head; at != sends_.tail; ++at) {
    if (uses_region(sends_[at].pieces(), region)) return true;
  }
  for (std::uint64_t at = receives_.head; at != receives_.tail; ++at) {
    if (uses_region(receives_[at].pieces(), region)) return true;
  }
  return false;
}

}  // namespace weft::engine
