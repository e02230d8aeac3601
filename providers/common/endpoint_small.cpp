// Small messages, the common case: framed and taken in one go, beside the general way of endpoint_output.cpp
// and endpoint_input.cpp that everything else goes.
#include <cstring>

#include "context.hpp"
#include "endpoint.hpp"
#include "program_memory.hpp"
#include "shared_receives.hpp"

namespace weft::engine {

// A whole message in one frame, copied.
void Endpoint::write_small_message(Outgoing& out, const std::byte* bytes, std::size_t length,
                                   std::uint8_t flags, std::uint32_t immediate) noexcept {
  ++may_send_.messages_framed;
  may_send_.announced = false;
  std::byte* at = out.copy_in(small_header + length);
  at = wire::store(
      at, wire::Header{static_cast<std::uint8_t>(wire::Type::whole_send), flags, 0,
                       static_cast<std::uint32_t>(length), (flags & wire::immediate) != 0 ? immediate : 0});
  if (length != 0) std::memcpy(at, bytes, length);
}

// A message of one small piece that had to wait. False: it does not fit, or may not leave yet.
bool Endpoint::frame_small_message(Outgoing& out, SendRecord& record) noexcept {
  if (!out.has_room(small_header + record.length) || !may_start(record)) return false;
  std::uint8_t flags = record.answered ? wire::charged : std::uint8_t{0};
  if (has(record.flags, Flags::with_immediate)) flags |= wire::immediate;
  if (asks(record)) flags |= wire::acknowledge;
  record.answered = false;
  write_small_message(out, record.piece.address, record.length, flags, record.immediate);
  record.number = static_cast<std::uint32_t>(may_send_.messages_framed);
  record.stream_end = stream_framed_ + out.total();
  ++framing_;
  return true;
}

inline void Endpoint::write_small_write(Outgoing& out, SendRecord& record) noexcept {
  const std::uint8_t flags = asks(record) ? wire::acknowledge : std::uint8_t{0};
  record.number = ++may_send_.requests_framed;
  std::byte* at = out.copy_in(small_header + record.length);
  at = wire::store(at, wire::Header{static_cast<std::uint8_t>(wire::Type::whole_write), flags,
                                    static_cast<std::uint16_t>(record.slot),
                                    static_cast<std::uint32_t>(record.length), record.remote_offset});
  if (record.length != 0) std::memcpy(at, record.piece.address, record.length);
  record.stream_end = stream_framed_ + out.total();
  ++framing_;
}

// Small messages and writes posted while nothing waits are framed from the requests themselves. Their bytes
// are copied, so a message is complete at once and needs no record, unless completions of operations before
// it are still to come. Stops at the first request that is anything else; result.status tells a refusal.
void Endpoint::post_small(const WorkRequest* requests, std::size_t count, PostResult& result) noexcept {
  Outgoing& out = group_.outgoing();
  out.clear();
  bool retires = false;
  for (; result.accepted < count; ++result.accepted) {
    const WorkRequest& request = requests[result.accepted];
    const bool write = request.operation == Operation::write;
    if (!(write || request.operation == Operation::send) || request.segments.size() > 1 ||
        (request.flags & known_flags) != request.flags) {
      break;
    }
    Piece piece;
    std::uint32_t slot = 0;
    result.status = check_small(request, piece, slot);
    if (result.status != Status::ok) break;
    if (piece.length > copy_below_ || !out.has_room(small_header + piece.length)) break;
    const bool recorded = write || !sends_.empty();
    if (recorded && sends_.full()) {
      result.status = Status::again;
      break;
    }
    const bool signalled = !has(request.flags, Flags::unsignalled);
    if (signalled && !send_queue_.reserve()) {
      result.status = Status::again;
      break;
    }
    if (recorded) {
      SendRecord& record = record_small(request, piece, slot);
      const bool waits = write ? has(record.flags, Flags::fence) && reads_head_ != reads_tail_
                               : !frame_small_message(out, record);
      if (waits) {
        ++result.accepted;  // it waits in its record
        break;
      }
      if (write) write_small_write(out, record);
      retires = retires || !write;
    } else if (!frame_unrecorded(out, request, piece)) {
      if (signalled) send_queue_.release(1);
      break;
    }
  }
  if (out.total() == 0) return;
  if (may_come_.worth_a_ride(receives_.depth(), window_can_wait_)) frame_update(out);
  if (send_framed(out) && retires) retire();
}

inline Status Endpoint::check_small(const WorkRequest& request, Piece& piece,
                                    std::uint32_t& slot) const noexcept {
  if (request.segments.empty()) return Status::ok;
  const bool inline_data = has(request.flags, Flags::inline_data);
  const Segment& segment = request.segments.front();
  const Status status = check_segment(regions_, segment, Access::none, inline_data, piece);
  if (status != Status::ok) return status;
  if (inline_data && segment.length > inline_limit_) return Status::too_big;
  if (request.operation == Operation::send || piece.length == 0) return Status::ok;
  if (import_for(request, piece.length, Access::remote_write) == nullptr) return Status::invalid_argument;
  slot = static_cast<std::uint32_t>(request.remote.memory);
  return Status::ok;
}

inline SendRecord& Endpoint::record_small(const WorkRequest& request, const Piece& piece,
                                          std::uint32_t slot) noexcept {
  SendRecord& record = sends_.back();
  ++sends_.tail;
  record.context = request.context;
  record.length = piece.length;
  record.remote_offset = request.remote.offset;
  record.piece = piece;
  record.spill = nullptr;
  record.slot = slot;
  record.immediate = request.immediate;
  record.number = 0;
  record.operation = request.operation;
  record.flags = request.flags;
  record.piece_count = static_cast<std::uint8_t>(request.segments.size());
  record.answered = false;
  record.offered = false;
  return record;
}

// False: it may not leave yet.
inline bool Endpoint::frame_unrecorded(Outgoing& out, const WorkRequest& request,
                                       const Piece& piece) noexcept {
  const auto leave = may_send_.take(piece.length);
  if (leave == SendCredit::Leave::not_yet) return false;
  std::uint8_t flags = leave == SendCredit::Leave::charged ? wire::charged : std::uint8_t{0};
  if (has(request.flags, Flags::with_immediate)) flags |= wire::immediate;
  write_small_message(out, piece.address, piece.length, flags, request.immediate);
  if (!has(request.flags, Flags::unsignalled)) {
    send_queue_.push_filled(
        [&](Completion& entry) { fill(entry, request.context, piece.length, Operation::send, Status::ok); });
  }
  return true;
}

// A write of one small piece, whole. False: it does not fit, or may not leave yet.
bool Endpoint::frame_small_write(Outgoing& out, SendRecord& record) noexcept {
  if (!out.has_room(small_header + record.length) ||
      (has(record.flags, Flags::fence) && reads_head_ != reads_tail_) ||
      (strict_writes_ && !write_may_leave())) {
    return false;
  }
  write_small_write(out, record);
  return true;
}

// The common cases in one go: whole small messages whose receives wait, whole small writes, and the updates
// that ride along with them. Returns the bytes of their frames; 0 when the first is anything else, which the
// general way then looks at.
std::size_t Endpoint::take_small_frames(const std::byte* bytes, std::size_t length) noexcept {
  if (arriving_ != Transfer::Kind::none || silenced_ || pending_end_ ||
      (stored_ != nullptr && !stored_->empty())) {
    return 0;
  }
  std::size_t done = 0;
  bool payloads = false;
  while (length - done >= small_header) {
    const std::byte* const frame = bytes + done;
    const auto type = static_cast<wire::Type>(*frame);
    std::size_t size = 0;
    if (type == wire::Type::whole_send) {
      size = take_small_message(frame, length - done);
    } else if (type == wire::Type::whole_write) {
      size = take_small_write(frame, length - done);
    } else if (type == wire::Type::update) {
      const std::size_t update = take_whole_update(frame, length - done);
      if (update == 0) break;
      done += update;
      continue;
    }
    if (size == 0) break;
    payloads = true;
    done += size;
  }
  if (payloads) large_payloads_ = false;
  return done;
}

inline std::size_t Endpoint::take_small_message(const std::byte* frame, std::size_t length) noexcept {
  const auto header = wire::load<wire::Header>(frame);
  const std::size_t size = small_header + header.length;
  if (size > length || header.length >= large_payload || (header.flags & ~wire::all_flags) != 0 ||
      header.slot != 0 || header.word > ((header.flags & wire::immediate) != 0 ? wire::most_immediate : 0)) {
    return 0;
  }
  // Straight from a shared queue: the endpoint's own ring would be one cold line more.
  const bool shared = receives_.empty();
  if (shared && shared_ == nullptr) return 0;
  const ReceiveRecord* const first = shared ? shared_->first() : &receives_.front();
  if (first == nullptr || header.length > first->capacity || first->piece_count > 1) return 0;
  const ReceiveRecord& record = *first;
  if ((header.flags & (wire::charged | wire::acknowledge)) != 0) [[unlikely]] {
    if ((header.flags & wire::charged) != 0) may_come_.returned += Unexpected::charge(header.length);
    if ((header.flags & wire::acknowledge) != 0) may_come_.tell_now = true;
  }
  if (header.length != 0) std::memcpy(record.piece.address, frame + small_header, header.length);
  group_.push_filled([&](Completion& entry) {
    fill(entry, record.context, header.length, Operation::receive, Status::ok);
    if ((header.flags & wire::immediate) != 0) {
      entry.has_immediate = true;
      entry.immediate = static_cast<std::uint32_t>(header.word);
    }
  });
  if (shared)
    shared_->take_first();
  else
    ++receives_.head;
  ++may_come_.messages_arrived;
  ++may_come_.messages_matched;
  peer_announced_ = false;
  return size;
}

inline std::size_t Endpoint::take_small_write(const std::byte* frame, std::size_t length) noexcept {
  const auto header = wire::load<wire::Header>(frame);
  const std::size_t size = small_header + header.length;
  if (size > length || header.length >= large_payload || header.length == 0 ||
      (header.flags & ~wire::acknowledge) != 0) {
    return 0;
  }
  const RegionEntry* const region = accessible(header.slot, header.word, header.length, Access::remote_write);
  if (region == nullptr) return 0;
  {
    const ProgramMemoryAccess unjudged;
    std::memcpy(region->address + header.word, frame + small_header, header.length);
  }
  may_come_.carried_out((header.flags & wire::acknowledge) != 0);
  return size;
}

// An update that is torn, or cannot be, is the general way's.
inline std::size_t Endpoint::take_whole_update(const std::byte* frame, std::size_t length) noexcept {
  constexpr std::size_t size = wire::header_size(static_cast<std::uint8_t>(wire::Type::update));
  if (length < size) return 0;
  const auto header = wire::load<wire::Header>(frame);
  if ((header.flags | header.slot | header.length) != 0) return 0;
  const auto extension = wire::load<wire::UpdateExtension>(frame + sizeof header);
  return may_send_.take_update(header.word, extension) ? size : 0;
}

}  // namespace weft::engine
