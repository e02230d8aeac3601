// Small messages, the common case: framed and taken in one go, beside the general way of endpoint_output.cpp
// and endpoint_input.cpp that everything else goes.
#include <cstring>

#include "context.hpp"
#include "endpoint.hpp"

namespace weft::engine {

// A whole message in one frame, copied.
void Endpoint::write_small_message(Outgoing& out, const std::byte* bytes, std::size_t length,
                                   std::uint8_t flags, std::uint32_t immediate) noexcept {
  ++messages_framed_;
  announced_ = false;
  std::byte* at = out.copy_in(small_header + length);
  at = wire::store(at, wire::Header{static_cast<std::uint8_t>(wire::Type::send), flags, 0,
                                    static_cast<std::uint32_t>(length), length});
  at = wire::store(at, wire::SendExtension{immediate, 0});
  if (length != 0) std::memcpy(at, bytes, length);
}

// A message of one small piece that had to wait. False: it does not fit, or may not leave yet.
bool Endpoint::frame_small_message(Outgoing& out, SendRecord& record) noexcept {
  if (!out.has_room(small_header + record.length) || !may_start(record)) return false;
  std::uint8_t flags = record.answered ? wire::charged : std::uint8_t{0};
  if (has(record.flags, Flags::with_immediate)) flags |= wire::immediate;
  if (wants_acknowledgement(record)) flags |= wire::acknowledge;
  record.answered = false;
  write_small_message(out, record.piece.address, record.length, flags, record.immediate);
  record.number = static_cast<std::uint32_t>(messages_framed_);
  record.stream_end = stream_framed_ + out.total();
  ++framing_;
  return true;
}

// Small messages posted while nothing waits: framed from the requests themselves, without records, since
// their bytes are copied and so complete at once. Stops at the first request that is anything else;
// result.status tells a refusal.
void Endpoint::post_small_messages(const WorkRequest* requests, std::size_t count,
                                   PostResult& result) noexcept {
  Outgoing& out = group_.outgoing();
  out.clear();
  for (; result.accepted < count; ++result.accepted) {
    const WorkRequest& request = requests[result.accepted];
    if (request.operation != Operation::send || request.segments.size() > 1) break;
    Checked checked;
    result.status = check(request, checked);
    if (result.status != Status::ok) break;
    const std::uint64_t length = checked.local.length;
    if (length > context_.options().copy_below || !out.has_room(small_header + length)) break;
    const bool signalled = !has(request.flags, Flags::unsignalled);
    if (signalled && !send_queue_.reserve()) {
      result.status = Status::again;
      break;
    }
    const auto leave = message_may_leave(length);
    if (leave == Leave::not_yet) {
      if (signalled) send_queue_.release(1);
      break;
    }
    std::uint8_t flags = leave == Leave::charged ? wire::charged : std::uint8_t{0};
    if (has(request.flags, Flags::with_immediate)) flags |= wire::immediate;
    write_small_message(out, checked.local.first.address, length, flags, request.immediate);
    if (signalled) {
      Completion entry = blank(Operation::send, Status::ok);
      entry.context = request.context;
      entry.bytes = length;
      send_queue_.push(entry);
    }
  }
  if (out.total() == 0) return;
  if (anything_to_say()) frame_update(out);
  send_framed(out);
}

// The common case in one go: a whole small message whose receive waits. Returns the bytes of its frame, 0 for
// anything else, which the general way below then looks at.
std::size_t Endpoint::take_small_message(const std::byte* bytes, std::size_t length) noexcept {
  if (length < small_header) return 0;
  const auto header = wire::load<wire::Header>(bytes);
  const std::size_t size = small_header + header.length;
  if (header.type != static_cast<std::uint8_t>(wire::Type::send) || header.zero != 0 ||
      (header.flags & ~wire::all_flags) != 0 || header.word != header.length || size > length) {
    return 0;
  }
  if (operation_.kind != Transfer::Kind::none || receives_.empty() ||
      (stored_ != nullptr && !stored_->empty())) {
    return 0;
  }
  const ReceiveRecord& record = receives_.front();
  if (record.piece_count > 1 || header.length > record.capacity || header.length >= large_payload) return 0;
  if ((header.flags & wire::charged) != 0) returned_ += Unexpected::charge(header.length);
  if ((header.flags & wire::acknowledge) != 0) tell_now_ = true;
  ++messages_arrived_;
  peer_announced_ = false;
  large_payloads_ = false;
  if (header.length != 0) std::memcpy(record.piece.address, bytes + small_header, header.length);
  const bool has_immediate = (header.flags & wire::immediate) != 0;
  complete_receive(header.length, has_immediate,
                   wire::load<wire::SendExtension>(bytes + sizeof(wire::Header)).immediate);
  return size;
}

}  // namespace weft::engine
