// Parsing what the peer sends. All of it is hostile until checked: types, lengths, slots, ranges, and whether
// the frame may come now (SEC-1).
#include <algorithm>
#include <cstring>

#include "context.hpp"
#include "endpoint.hpp"

namespace weft::engine {

namespace {

template <class Extension>
[[nodiscard]] Extension extension_at(const std::byte* header) noexcept {
  return wire::load<Extension>(header + sizeof(wire::Header));
}

}  // namespace

bool Endpoint::break_protocol(std::string_view what) noexcept {
  fail(Status::protocol, 0, 0, what);
  return false;
}

bool Endpoint::refuse_access(std::string_view what) noexcept {
  // The peer's operation at fault, by its number; so the peer finds its record (ERR-2).
  fail(Status::remote_access_error, may_come_.requests_done + std::uint64_t{1}, 0, what);
  return false;
}

// Payload of an open operation goes straight to where it belongs; what follows it into the scratch buffer.
int Endpoint::inbound_payload(std::array<iovec, 2>& places) noexcept {
  direct_ = 0;
  const Piece next = open_->sink.next(frame_left_);
  if (next.length == 0) {
    places[0] = scratch_place();
    return 1;
  }
  direct_ = next.length;
  places[0] = {next.address, next.length};
  if (next.length != frame_left_) return 1;
  places[1] = scratch_place();
  return 2;
}

bool Endpoint::arrived_directly(std::size_t length) noexcept {
  const std::size_t direct = std::min(length, direct_);
  open_->sink.advance(direct);
  open_->left -= direct;
  frame_left_ -= static_cast<std::uint32_t>(direct);
  if (frame_left_ == 0 && !finish_frame()) return false;
  return consume(group_.scratch(), length - direct);
}

bool Endpoint::consume(const std::byte* bytes, std::size_t length) noexcept {
  while (length != 0) {
    if (pulling_) [[unlikely]]
      return keep_waiting(bytes, length);
    if (frame_left_ == 0 && partial_length_ == 0) [[likely]] {
      if (const std::size_t size = take_small_frames(bytes, length); size != 0) [[likely]] {
        bytes += size;
        length -= size;
        continue;
      }
    }
    if (frame_left_ != 0) {
      const auto part = static_cast<std::uint32_t>(std::min<std::size_t>(length, frame_left_));
      open_->sink.put(bytes, part);
      open_->left -= part;
      frame_left_ -= part;
      bytes += part;
      length -= part;
      if (frame_left_ == 0 && !finish_frame()) return false;
      continue;
    }
    // A header may be torn: gather it, first enough to know its size.
    const std::byte* header = bytes;
    const auto type = static_cast<std::uint8_t>(partial_length_ != 0 ? partial_[0] : bytes[0]);
    const std::size_t size = wire::header_size(type);
    if (size == wire::no_such_type) return break_protocol("the peer sent a frame of an unknown type");
    if (partial_length_ != 0 || length < size) {
      const std::size_t part = std::min(length, size - partial_length_);
      std::memcpy(partial_.data() + partial_length_, bytes, part);
      partial_length_ += part;
      bytes += part;
      length -= part;
      if (partial_length_ < size) return true;
      header = partial_.data();
      partial_length_ = 0;
    } else {
      bytes += size;
      length -= size;
    }
    if (!begin_frame(header)) return false;
    if (frame_left_ == 0 && open_ != nullptr && !finish_frame()) return false;
  }
  return true;
}

// After this, either open_ is the transfer whose payload follows (perhaps none), or it is null.
bool Endpoint::begin_frame(const std::byte* bytes) noexcept {
  const auto header = wire::load<wire::Header>(bytes);
  const auto type = static_cast<wire::Type>(header.type);
  if ((header.flags & ~wire::flags_of(type)) != 0)
    return break_protocol("the peer sent a frame with flags that its type does not have");
  if (header.slot != 0 && type != wire::Type::whole_write)
    return break_protocol("the peer sent a frame with a slot that its type does not have");
  const bool carries = type == wire::Type::whole_send || type == wire::Type::whole_write ||
                       type == wire::Type::send || type == wire::Type::write || type == wire::Type::more ||
                       type == wire::Type::read_data || type == wire::Type::offer;
  if (!carries && header.length != 0)
    return break_protocol("the peer sent payload with a frame that has none");
  if (header.length > context_.options().frame_payload)
    return break_protocol("the peer sent a frame that is too long");
  open_ = nullptr;
  if (offers_ != nullptr && type != wire::Type::offer) offers_->offered_to = nullptr;
  large_payloads_ = header.length >= large_payload || (large_payloads_ && header.length == 0);
  switch (type) {
    case wire::Type::whole_send:
      if (header.word > ((header.flags & wire::immediate) != 0 ? wire::most_immediate : 0))
        return break_protocol("the peer sent an immediate that is none");
      return begin_send({header.type, header.flags, 0, header.length, header.length},
                        {static_cast<std::uint32_t>(header.word), 0});
    case wire::Type::whole_write:
      return begin_write(header, {header.slot, 0, header.length});
    case wire::Type::send:
      return begin_send(header, extension_at<wire::SendExtension>(bytes));
    case wire::Type::write:
      return begin_write(header, extension_at<wire::AccessExtension>(bytes));
    case wire::Type::more:
      return begin_more(header);
    case wire::Type::read:
      return begin_read(header, extension_at<wire::AccessExtension>(bytes));
    case wire::Type::read_data:
      return begin_read_data(header);
    case wire::Type::atomic:
      return on_atomic(header, extension_at<wire::AtomicExtension>(bytes));
    case wire::Type::atomic_data:
      return on_atomic_data(header);
    case wire::Type::update:
      return on_update(header, extension_at<wire::UpdateExtension>(bytes));
    case wire::Type::bind:
      return on_bind(header, extension_at<wire::BindExtension>(bytes));
    case wire::Type::unbind:
      if (header.word < bindings_.size()) bindings_[header.word] = 0;
      return true;
    case wire::Type::announce:
      if (shared_ == nullptr || peer_announced_)
        return break_protocol("the peer announced a message out of turn");
      peer_announced_ = true;
      announced_length_ = header.word;
      match_waiting();
      return moving();
    case wire::Type::flush:
      may_come_.carried_out((header.flags & wire::acknowledge) != 0);
      return true;
    case wire::Type::pulls:
      if (offers_ != nullptr) offers_->peer_pulls = true;
      return true;
    case wire::Type::offer:
      return begin_offer(header);
    case wire::Type::taken:
      return on_taken(header);
    case wire::Type::close:
      if (peer_closed_) return break_protocol("the peer closed twice");
      peer_closed_ = true;
      may_come_.tell_now = true;
      add_control(wire::Type::close_ack, 0);
      return true;
    case wire::Type::close_ack:
      if (!close_sent_ || close_answered_)
        return break_protocol("the peer acknowledged a close that was not sent");
      close_answered_ = true;
      events_->drained(may_send_.messages_framed);
      return true;
  }
  return break_protocol("the peer sent a frame of an unknown type");
}

// Notes that `length` bytes of the transfer's payload follow in this frame.
bool Endpoint::expect_payload(Transfer& transfer, std::uint32_t length, bool may_be_offered) noexcept {
  const std::uint64_t most = context_.options().frame_payload;
  const bool offer_follows = length == 0 && may_be_offered && offers_ != nullptr;
  if (length > transfer.left || (length < transfer.left && length != most && !offer_follows)) {
    return break_protocol("the peer sent a piece of the wrong length");
  }
  if (offers_ != nullptr) {
    if (offer_follows && transfer.left != 0) offers_->offered_to = &transfer;
    if (length >= context_.options().offer_from) large_payload_passes();
  }
  open_ = &transfer;
  frame_left_ = length;
  return true;
}

bool Endpoint::begin_send(const wire::Header& header, const wire::SendExtension& extension) noexcept {
  if (arriving_ != Transfer::Kind::none) return break_protocol("the peer began a message inside another");
  if (extension.zero != 0) return break_protocol("the peer sent a message with unknown fields");
  if (header.word > limits_.max_message)
    return break_protocol("the peer sent a message above the agreed limit");
  operation_.total = operation_.left = header.word;
  operation_.has_immediate = (header.flags & wire::immediate) != 0;
  operation_.immediate = extension.immediate;
  operation_.charged = (header.flags & wire::charged) != 0;
  operation_.acknowledge = (header.flags & wire::acknowledge) != 0;
  arriving_ = Transfer::Kind::message;
  if (operation_.acknowledge) may_come_.tell_now = true;
  return begin_message(header.word, operation_.charged, receives_ahead()) &&
         expect_payload(operation_, header.length, true);
}

bool Endpoint::begin_write(const wire::Header& header, const wire::AccessExtension& extension) noexcept {
  if (arriving_ != Transfer::Kind::none)
    return break_protocol("the peer began a write inside another operation");
  if (extension.total > limits_.max_transfer)
    return break_protocol("the peer sent a write above the agreed limit");
  const bool notifies = (header.flags & wire::immediate) != 0;
  operation_.total = operation_.left = extension.total;
  operation_.has_immediate = notifies;
  operation_.immediate = extension.immediate;
  operation_.charged = (header.flags & wire::charged) != 0;
  operation_.acknowledge = (header.flags & wire::acknowledge) != 0;
  arriving_ = notifies ? Transfer::Kind::notified_write : Transfer::Kind::write;
  operation_.sink.start_discarding();
  if (extension.total != 0) {
    const RegionEntry* region =
        accessible(extension.slot, header.word, extension.total, Access::remote_write);
    if (region == nullptr) return refuse_access("a write to memory that is not registered for it");
    operation_.sink.start(Piece{region->address + header.word, extension.total, region->token.load()});
  }
  return expect_payload(operation_, header.length, true);
}

bool Endpoint::begin_more(const wire::Header& header) noexcept {
  if (arriving_ == Transfer::Kind::none || header.length == 0) {
    return break_protocol("the peer continued an operation that is not open");
  }
  return expect_payload(operation_, header.length);
}

bool Endpoint::begin_read(const wire::Header& header, const wire::AccessExtension& extension) noexcept {
  if (answers_tail_ - answers_head_ >= limits_.max_outstanding_reads) {
    return break_protocol("the peer has more reads open than agreed");
  }
  Answer answer;
  if (extension.total != 0) {
    const RegionEntry* region = accessible(extension.slot, header.word, extension.total, Access::remote_read);
    if (region == nullptr) return refuse_access("a read of memory that is not registered for it");
    answer.piece = {region->address + header.word, extension.total, region->token.load()};
  }
  answers_[answers_tail_++ & (answers_.size() - 1)] = answer;
  may_come_.carried_out(false);
  return true;
}

bool Endpoint::begin_read_data(const wire::Header& header) noexcept {
  const std::uint32_t at = reads_head_ + answers_ahead();
  if (at == reads_tail_) return break_protocol("the peer answered a read that was not sent");
  SendRecord& record = sends_[reads_[at & (reads_.size() - 1)]];
  if (record.operation != Operation::read) return break_protocol("the peer answered an atomic with bytes");
  if (!answer_arriving_) {
    answer_arriving_ = true;
    answer_in_.total = answer_in_.left = record.length;
    answer_in_.sink.start(record.pieces());
  }
  return expect_payload(answer_in_, header.length, true);
}

bool Endpoint::on_atomic(const wire::Header& header, const wire::AtomicExtension& extension) noexcept {
  if (answers_tail_ - answers_head_ >= limits_.max_outstanding_reads) {
    return break_protocol("the peer has more atomics open than agreed");
  }
  const RegionEntry* region =
      accessible(extension.slot, header.word, sizeof(std::uint64_t), Access::remote_atomic);
  std::byte* place = region == nullptr ? nullptr : region->address + header.word;
  if (place == nullptr || reinterpret_cast<std::uintptr_t>(place) % sizeof(std::uint64_t) != 0) {
    return refuse_access("an atomic on memory that is not registered for it, or not aligned");
  }
  if (extension.swap > 1) return break_protocol("the peer asked for an atomic of an unknown kind");
  // Real atomic instructions: other groups, and the program itself, may be at the same value (OPS-5).
  const std::atomic_ref<std::uint64_t> value(*reinterpret_cast<std::uint64_t*>(place));
  Answer answer;
  answer.atomic = true;
  if (extension.swap != 0) {
    answer.value = extension.compare;
    value.compare_exchange_strong(answer.value, extension.operand);
  } else {
    answer.value = value.fetch_add(extension.operand);
  }
  answers_[answers_tail_++ & (answers_.size() - 1)] = answer;
  may_come_.carried_out(false);
  return true;
}

bool Endpoint::on_atomic_data(const wire::Header& header) noexcept {
  if (reads_head_ == reads_tail_) return break_protocol("the peer answered an atomic that was not sent");
  SendRecord& record = sends_[reads_[reads_head_ & (reads_.size() - 1)]];
  if (record.operation == Operation::read) return break_protocol("the peer answered a read with a value");
  Sink sink;
  sink.start(record.pieces());
  sink.put(reinterpret_cast<const std::byte*>(&header.word), sizeof header.word);
  take_answer(record);
  return true;
}

bool Endpoint::on_update(const wire::Header& header, const wire::UpdateExtension& extension) noexcept {
  if (!may_send_.take_update(header.word, extension))
    return break_protocol("the peer granted or acknowledged what cannot be");
  return true;
}

bool Endpoint::on_bind(const wire::Header& header, const wire::BindExtension& extension) noexcept {
  constexpr std::uint64_t most_slots = 1U << 16;
  if (header.word >= most_slots || header.word > bindings_.size()) {
    return break_protocol("the peer bound keys out of order");
  }
  if (header.word == bindings_.size()) bindings_.push_back(0);
  // A wrong secret binds nothing; using it is what fails (MEM-4).
  const RegionEntry* region = regions_.find(extension.region);
  const bool right = region != nullptr && region->secret == Secret{extension.secret[0], extension.secret[1]};
  bindings_[header.word] = right ? extension.region : 0;
  return true;
}

// The current frame's payload is complete.
bool Endpoint::finish_frame() noexcept {
  Transfer& transfer = *open_;
  open_ = nullptr;
  if (transfer.left != 0) return true;
  if (&transfer == &operation_) return finish_operation();
  if (offers_ != nullptr && &transfer == &offers_->token_in) return begin_fetch();
  answer_arriving_ = false;
  take_answer(sends_[reads_[reads_head_ & (reads_.size() - 1)]]);
  return true;
}

bool Endpoint::finish_operation() noexcept {
  const Transfer::Kind kind = arriving_;
  arriving_ = Transfer::Kind::none;
  switch (kind) {
    case Transfer::Kind::message:
      complete_receive(operation_.total, operation_.has_immediate, operation_.immediate);
      return moving();
    case Transfer::Kind::stored_message:
      stored_->last().complete = true;
      return match_stored();
    case Transfer::Kind::notified_write: {
      // The notification takes a receive as a message does; its bytes are already in place (OPS-4).
      may_come_.carried_out(operation_.acknowledge);
      const std::uint64_t total = operation_.total;
      if (!begin_message(0, operation_.charged)) return false;
      if (arriving_ == Transfer::Kind::stored_message) {
        arriving_ = Transfer::Kind::none;
        stored_->last().length = total;
        stored_->last().complete = true;
        return true;
      }
      complete_receive(total, true, operation_.immediate);
      return moving();
    }
    case Transfer::Kind::write:
      may_come_.carried_out(operation_.acknowledge);
      return true;
    default:
      return true;
  }
}

}  // namespace weft::engine
