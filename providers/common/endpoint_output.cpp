// Framing and sending: what was posted, what is owed to the peer, what the peer must know. Everything that
// can leave goes into one transmission, so that a batch, or whatever queued while the path was busy, costs
// one system call.
#include <algorithm>
#include <cstring>
#include <new>

#include "context.hpp"
#include "endpoint.hpp"
#include "program_memory.hpp"

namespace weft::engine {

namespace {

[[nodiscard]] constexpr bool reached(std::uint32_t now, std::uint32_t wanted) noexcept {
  return static_cast<std::int32_t>(now - wanted) >= 0;
}

[[nodiscard]] constexpr wire::Type frame_type(Operation operation) noexcept {
  switch (operation) {
    case Operation::write:
    case Operation::write_with_immediate:
      return wire::Type::write;
    case Operation::read:
      return wire::Type::read;
    case Operation::fetch_add:
    case Operation::compare_swap:
      return wire::Type::atomic;
    case Operation::flush:
      return wire::Type::flush;
    default:
      return wire::Type::send;
  }
}

}  // namespace

void Endpoint::push_output() noexcept {
  while (moving()) {
    if (kept_ != nullptr && !flush_kept()) return;
    if (stream_is_held(Offers::most_behind)) [[unlikely]] {
      if (!push_control()) return;
      break;
    }
    Outgoing& out = group_.outgoing();
    out.clear();
    frame_control(out);
    answered_from_.clear();
    records_first_ = !records_first_;
    if (records_first_) frame_records(out);
    frame_answers(out);
    if (!records_first_) frame_records(out);
    if (update_due() || (out.total() != 0 && may_come_.worth_a_ride(receives_.depth(), window_can_wait_)))
      frame_update(out);
    if (out.total() == 0) {
      if (!has_control()) break;
      continue;  // something to announce came up while framing
    }
    if (!send_framed(out)) return;
    if (framing_ == sends_.tail && answers_head_ == answers_tail_ && !has_control()) break;
  }
  retire();
}

// While the stream is held. The peer's own may be held as well, until it hears `taken`. False: as
// send_framed.
bool Endpoint::push_control() noexcept {
  while (has_control() && !stream_is_held(Offers::most_control_behind)) {
    Outgoing& out = group_.outgoing();
    out.clear();
    frame_control(out);
    if (!send_framed(out)) return false;
  }
  return true;
}

// Sends what an earlier transmission left. False: still no room.
bool Endpoint::flush_kept() noexcept {
  while (kept_->total() != 0) {
    const std::ptrdiff_t taken = transmit(kept_->pieces(), kept_->count());
    if (taken < 0) {
      path_broken(static_cast<std::int32_t>(-taken), "sending failed");
      return false;
    }
    if (taken == 0) {
      output_waits(true);
      retire();
      return false;
    }
    stream_sent_ += static_cast<std::uint64_t>(taken);
    kept_->drop_front(static_cast<std::size_t>(taken));
  }
  group_.give_back(std::move(kept_));
  output_waits(false);
  return true;
}

void Endpoint::add_control(wire::Type type, std::uint64_t word, std::span<const std::byte> extension) {
  const std::size_t old_size = control_.size();
  control_.resize(old_size + sizeof(wire::Header) + extension.size());
  std::byte* at = control_.data() + old_size;
  at = wire::store(at, wire::Header{static_cast<std::uint8_t>(type), 0, 0, 0, word});
  if (!extension.empty()) std::memcpy(at, extension.data(), extension.size());
}

// Keys bound, announcements, closing: they were framed when they came up.
void Endpoint::frame_control(Outgoing& out) noexcept {
  if (!has_control()) [[likely]]
    return;
  // First, and once for all that was fetched: the peer may be able to send nothing before it hears.
  if (owes_taken_ && out.has_room(sizeof(wire::Header))) {
    owes_taken_ = false;
    wire::store(out.copy_in(sizeof(wire::Header)),
                wire::Header{static_cast<std::uint8_t>(wire::Type::taken), 0, 0, 0, offers_->fetched});
  }
  std::size_t done = 0;
  while (done < control_.size()) {
    const std::size_t length = wire::header_size(static_cast<std::uint8_t>(control_[done]));
    if (!out.has_room(length)) break;
    std::memcpy(out.copy_in(length), control_.data() + done, length);
    done += length;
  }
  control_.erase(control_.begin(), control_.begin() + static_cast<std::ptrdiff_t>(done));
}

void Endpoint::frame_update(Outgoing& out) noexcept {
  constexpr std::size_t length = wire::header_size(static_cast<std::uint8_t>(wire::Type::update));
  if (!out.has_room(length)) return;
  may_come_.store_update(out.copy_in(length));
  Counts::add(group_.counts().updates);
}

void Endpoint::send_due() noexcept {
  is_due_ = false;
  if (moving() && update_due()) push_output();
}

// Held back for long enough: nothing else took it along (PRG-5).
void Endpoint::send_held_back() noexcept {
  holds_back_ = false;
  if (!moving()) return;
  may_come_.tell_now = may_come_.untold();
  release_writes_ = true;
  push_output();
  release_writes_ = false;
}

void Endpoint::frame_answers(Outgoing& out) noexcept {
  const std::uint32_t mask = static_cast<std::uint32_t>(answers_.size()) - 1;
  while (answers_head_ != answers_tail_ && !is_held_with(out)) {
    Answer& answer = answers_[answers_head_ & mask];
    if (answer.atomic) {
      if (!out.has_room(sizeof(wire::Header))) return;
      wire::store(out.copy_in(sizeof(wire::Header)),
                  wire::Header{static_cast<std::uint8_t>(wire::Type::atomic_data), 0, 0, 0, answer.value});
      ++answers_head_;
      continue;
    }
    const EngineOptions& options = context_.options();
    if (out.total() >= options.frame_payload) return;
    if (may_be_offered(answer)) {
      if (!frame_answer_offer(out, answer)) return;
      continue;
    }
    const auto length =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(answer.piece.length, options.frame_payload));
    const bool copied = length <= copy_below_;
    if (!copied && offers_open_) return;  // the peer would have to keep it
    answer.in_stream = true;
    if (offers_ != nullptr && length >= options.offer_from) large_payload_passes();
    if (!out.has_room(sizeof(wire::Header) + (copied ? length : 0), 1)) return;
    wire::store(out.copy_in(sizeof(wire::Header)),
                wire::Header{static_cast<std::uint8_t>(wire::Type::read_data), 0, 0, length, 0});
    if (copied) {
      const ProgramMemoryAccess unjudged;
      if (length != 0) std::memcpy(out.copy_in(length), answer.piece.address, length);
    } else {
      out.refer(answer.piece.address, length);
      answered_from_.push_back(answer.piece.region);  // has room: one for each piece
    }
    answer.piece.address += length;
    answer.piece.length -= length;
    if (answer.piece.length == 0) ++answers_head_;
  }
}

// Whether the record at the front may leave, by order and by what the peer granted; marks how.
bool Endpoint::may_start(SendRecord& record) noexcept {
  if (has(record.flags, Flags::fence) && reads_head_ != reads_tail_) return false;
  switch (record.operation) {
    case Operation::send:
    case Operation::write_with_immediate: {
      const auto leave = may_send_.take(record.operation == Operation::send ? record.length : 0);
      record.answered = leave == SendCredit::Leave::charged;  // kept here until it is framed
      record.operand = record.answered ? may_send_.charged : 0;
      if (leave != SendCredit::Leave::not_yet) return true;
      if (peer_shares_receives_ && !may_send_.announced) {
        may_send_.announced = true;
        // Cannot throw: the vector keeps the room of earlier announcements, at most one is in it.
        add_control(wire::Type::announce, record.length);
      }
      return false;
    }
    case Operation::read:
    case Operation::fetch_add:
    case Operation::compare_swap:
      return reads_tail_ - reads_head_ < limits_.max_outstanding_reads;
    case Operation::write:
      return !strict_writes_ || write_may_leave();
    default:
      return true;
  }
}

// Header and extension of an operation's first frame.
void Endpoint::frame_start(Outgoing& out, SendRecord& record, std::uint32_t payload) noexcept {
  const wire::Type type = frame_type(record.operation);
  wire::Header header{static_cast<std::uint8_t>(type), 0, 0, payload, record.length};
  std::byte* at = out.copy_in(wire::header_size(static_cast<std::uint8_t>(type)));
  const bool message =
      record.operation == Operation::send || record.operation == Operation::write_with_immediate;
  if (message) {
    ++may_send_.messages_framed;
    may_send_.announced = false;
    if (record.answered) header.flags |= wire::charged;
    record.answered = false;
  }
  if (asks(record)) header.flags |= wire::acknowledge;
  if (record.operation == Operation::send) {
    record.number = static_cast<std::uint32_t>(may_send_.messages_framed);
    if (has(record.flags, Flags::with_immediate)) header.flags |= wire::immediate;
    at = wire::store(at, header);
    wire::store(at, wire::SendExtension{record.immediate, 0});
    return;
  }
  record.number = ++may_send_.requests_framed;
  header.word = record.remote_offset;
  switch (type) {
    case wire::Type::atomic: {
      at = wire::store(at, header);
      wire::store(at,
                  wire::AtomicExtension{record.slot, record.operation == Operation::compare_swap ? 1U : 0U,
                                        record.operand, record.compare});
      break;
    }
    case wire::Type::flush: {
      header.word = 0;
      wire::store(at, header);
      break;
    }
    default: {
      if (record.operation == Operation::write_with_immediate) header.flags |= wire::immediate;
      at = wire::store(at, header);
      wire::store(at, wire::AccessExtension{record.slot, record.immediate, record.length});
      break;
    }
  }
  if (type == wire::Type::read || type == wire::Type::atomic) {
    reads_[reads_tail_++ & (reads_.size() - 1)] = framing_;
  }
}

void Endpoint::frame_payload(Outgoing& out, const SendRecord& record, std::uint64_t offset,
                             std::uint32_t length, bool copied) noexcept {
  const Pieces pieces = record.pieces();
  for (std::uint32_t i = 0; length != 0 && i < pieces.count; ++i) {
    const Piece& piece = pieces.first[i];
    if (offset >= piece.length) {
      offset -= piece.length;
      continue;
    }
    const auto part = static_cast<std::uint32_t>(std::min<std::uint64_t>(piece.length - offset, length));
    if (copied) {
      std::memcpy(out.copy_in(part), piece.address + offset, part);
    } else {
      out.refer(piece.address + offset, part);
    }
    length -= part;
    offset = 0;
  }
}

// Hands what was framed to the transport and keeps what it does not take. False: there is no room, or the
// path broke.
bool Endpoint::send_framed(Outgoing& out) noexcept {
  out.seal();
  const std::size_t total = out.total();
  stream_framed_ += total;
  const std::ptrdiff_t taken = transmit(out.pieces(), out.count());
  if (taken < 0) {
    path_broken(static_cast<std::int32_t>(-taken), "sending failed");
    return false;
  }
  stream_sent_ += static_cast<std::uint64_t>(taken);
  if (static_cast<std::size_t>(taken) == total) return true;
  try {
    kept_ = group_.keep_outgoing();
  } catch (const std::bad_alloc&) {
    fail(Status::aborted, 0, 0, "out of memory for what the path did not take");
    return false;
  }
  kept_->drop_front(static_cast<std::size_t>(taken));
  return flush_kept();
}

void Endpoint::frame_records(Outgoing& out) noexcept {
  const EngineOptions& options = context_.options();
  if (offers_ != nullptr) offers_->stalls_records = false;
  while (framing_ != sends_.tail && out.total() < options.frame_payload && !is_held_with(out)) {
    SendRecord& record = sends_[framing_];
    if (record.piece_count <= 1 && record.length <= copy_below_ && record.operation <= Operation::write)
        [[likely]] {
      const bool framed = record.operation == Operation::send ? frame_small_message(out, record)
                                                              : frame_small_write(out, record);
      if (!framed) return;
      continue;
    }
    const bool starts = framed_bytes_ == 0;
    const bool carries =
        record.operation <= Operation::write_with_immediate;  // send, write, write_with_immediate
    const std::uint64_t left = carries ? record.length - framed_bytes_ : 0;
    const auto payload = static_cast<std::uint32_t>(std::min<std::uint64_t>(left, options.frame_payload));
    const bool copied = payload <= copy_below_;
    const bool offers = starts && offers_ != nullptr && carries && may_offer(record);
    if (offers_open_ && (offers ? offers_->is_full() : !copied)) {
      offers_->stalls_records = !offers;
      return;
    }
    if (!out.has_room(wire::max_header + (copied ? payload : 0), record.piece_count)) return;
    if (offers && !out.has_room(wire::max_header + sizeof(wire::Header) + wire::max_token)) return;
    if (starts) {
      if (!may_start(record)) return;
      if (offers) {
        std::array<std::byte, wire::max_token> token;
        if (const std::size_t length = offer(record.piece, token); length != 0) {
          frame_offer(out, record, std::span(token).first(length));
          continue;
        }
        if (offers_open_) {
          offers_->stalls_records = true;
          return;
        }
      }
      frame_start(out, record, payload);
    } else {
      wire::store(out.copy_in(sizeof(wire::Header)),
                  wire::Header{static_cast<std::uint8_t>(wire::Type::more), 0, 0, payload, 0});
    }
    if (offers_ != nullptr && payload >= options.offer_from) large_payload_passes();
    if (payload != 0) frame_payload(out, record, framed_bytes_, payload, copied);
    framed_bytes_ += payload;
    if (!carries || framed_bytes_ == record.length) {
      record.stream_end = stream_framed_ + out.total();
      framed_bytes_ = 0;
      ++framing_;
    }
  }
}

// Completes what is done, in posting order (ORD-3, CMP-4).
void Endpoint::retire() noexcept {
  if (state_ == State::ended) return;  // the reporters have the records
  while (sends_.head != framing_) {
    SendRecord& record = sends_.front();
    if (record.offered && record.compare > offers_->taken) return;
    switch (record.operation) {
      case Operation::send:
        if (record.stream_end > stream_sent_) return;
        if (strict_sends_ && !receive_was_there(record)) return;
        break;
      case Operation::read:
      case Operation::fetch_add:
      case Operation::compare_swap:
        if (!record.answered) return;
        break;
      default:
        if (!reached(may_send_.acknowledged, record.number) && !close_answered_) return;
        if (record.stream_end > stream_sent_) return;
        if (strict_sends_ && record.operation == Operation::write_with_immediate &&
            !receive_was_there(record))
          return;
        break;
    }
    complete_send(record, Status::ok, 0);
    ++sends_.head;
  }
  if (state_ == State::closing && sends_.empty() && !close_sent_) {
    close_sent_ = true;
    add_control(wire::Type::close, 0);
    push_output();
  }
}

void Endpoint::complete_send(SendRecord& record, Status status, std::int32_t native_code) noexcept {
  if (!has(record.flags, Flags::unsignalled)) {
    if (silenced_) {
      send_queue_.release(1);
    } else {
      send_queue_.push_filled([&](Completion& entry) {
        fill(entry, record.context, status == Status::ok ? record.length : 0, record.operation, status);
        entry.native_code = native_code;
      });
    }
  }
  if (record.spill != nullptr) {
    group_.spills().give(record.spill);
    record.spill = nullptr;
  }
}

}  // namespace weft::engine
