#include "message_endpoint.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "message_context.hpp"
#include "program_memory.hpp"

namespace weft::engine {

MessageEndpoint::MessageEndpoint(MessageContext& context, MessageQueue& queue,
                                 const provider::EndpointRequest& request)
    : Endpoint(context, queue, request), queue_(queue) {
  while (token_ == 0) context.host().random_bytes(std::as_writable_bytes(std::span(&token_, 1)));
  const HelperEntry entry(queue_.gate());
  queue_.add(*this);
  seated_ = true;
}

MessageEndpoint::~MessageEndpoint() {
  const HelperEntry entry(queue_.gate());
  if (std::exchange(seated_, false)) queue_.remove(*this);
}

std::vector<std::byte> MessageEndpoint::blob(const provider::PathAddresses& path) {
  std::vector<std::byte> bytes = Endpoint::blob(path);
  const std::size_t engine_part = bytes.size();
  bytes.resize(engine_part + sizeof(message::Address));
  wire::store(bytes.data() + engine_part, message::Address{token_, seat_, 0});
  const std::vector<std::byte> fabric_part = fabric_blob(path);
  bytes.insert(bytes.end(), fabric_part.begin(), fabric_part.end());
  return bytes;
}

bool MessageEndpoint::establish(const provider::PeerParameters& peer) {
  constexpr std::size_t fixed = EngineBlob::size + sizeof(message::Address);
  if (peer.blob.size() < fixed) {
    throw Error(Status::protocol, "the peer's endpoint description has " + std::to_string(peer.blob.size()) +
                                      " bytes, which is too short; is the peer's weft of another version, or "
                                      "not weft at all?");
  }
  provider::PeerParameters engine_peer = peer;
  engine_peer.blob = peer.blob.first(EngineBlob::size);
  Endpoint::establish(engine_peer);
  const auto address = wire::load<message::Address>(peer.blob.data() + EngineBlob::size);
  if (address.token == 0 || address.slot > message::slot_mask || address.zero != 0) {
    throw Error(Status::protocol, "the peer's endpoint description is malformed");
  }
  const HelperEntry entry(queue_.gate());
  peer_token_ = address.token;
  peer_slot_ = address.slot;
  return connect_fabric(peer.blob.subspan(fixed), peer);
}

void MessageEndpoint::attach() noexcept {
  attached_ = true;
  rings_ = rings_ || queue_.needs_doorbell();
  if (rings_) queue_.awake_to_.push_back(this);  // has room for all
  if (can_pull()) announce_pulls();
  if (!say_up()) output_waits(true);
  deliver_kept();
}

void MessageEndpoint::detach() noexcept {
  attached_ = false;
  if (!std::exchange(seated_, false)) return;
  queue_.remove(*this);
  held_ = 0;
  kept_.reset();
  disconnect_fabric();
}

void MessageEndpoint::output_waits(bool waits) noexcept {
  if (waits_ == waits) return;
  waits_ = waits;
  queue_.output_waits(*this, waits);
}

void MessageEndpoint::resume() noexcept {
  if (!moving()) return;
  if (!said_up_ && !say_up()) {
    output_waits(true);
    return;
  }
  push_output();
}

// The peer sends freely only once it has heard anything, so that a side which is not up yet need not keep
// much. False: later. A path that turns out broken ends the endpoint.
bool MessageEndpoint::say_up() noexcept {
  const iovec nothing{};
  const std::ptrdiff_t taken = transmit(&nothing, 0);
  if (taken < 0) path_broken(static_cast<std::int32_t>(-taken), "sending failed");
  return said_up_ || taken < 0;
}

SendBuffer* MessageEndpoint::take_buffer() noexcept {
  SendBuffer* const buffer = queue_.buffers().take(held_);
  if (buffer == nullptr) return nullptr;
  ++held_;
  buffer->owner = this;
  return buffer;
}

void MessageEndpoint::give_back(SendBuffer& buffer) noexcept {
  queue_.buffers().give(buffer, held_);
  --held_;
}

MessageEndpoint::Submitted MessageEndpoint::send(SendBuffer& buffer, std::int32_t& native_code) noexcept {
  buffer.under_way = true;
  const Submitted how = submit(buffer, native_code);
  if (how != Submitted::under_way) give_back(buffer);
  if (how == Submitted::done || how == Submitted::under_way) ++sequence_out_;
  return how;
}

inline MessageEndpoint::Submitted MessageEndpoint::send_small(const iovec& bytes,
                                                              std::int32_t& native_code) noexcept {
  const Submitted how = submit_small(next_header(message::Kind::data), bytes, native_code);
  if (how != Submitted::done) return how;
  ++sequence_out_;
  ++data_out_;
  said_up_ = true;
  return how;
}

inline void MessageEndpoint::data_left(bool under_way) noexcept {
  unrung_ = true;
  lingers();
  if (peer_asleep_) [[unlikely]]
    ring();
  queue_.message_left(told_asleep_, under_way || queue_.messages_linger());
}

// Whether the fabric is given the bytes where they lie, without a copy in between.
bool MessageEndpoint::goes_in_pieces(const iovec* pieces, int count) const noexcept {
  const std::uint32_t from = queue_.message_context().message_options().pieces_from;
  std::size_t total = 0;
  for (int i = 0; i < count; ++i) {
    total += pieces[i].iov_len;
    if (total >= from) return true;
  }
  return false;
}

MessageEndpoint::Submitted MessageEndpoint::send_pieces(Cursor& from, std::int32_t& native_code) noexcept {
  const std::size_t most = queue_.message_context().message_options().small_message - sizeof(message::Header);
  while (from.count != 0) {
    const std::size_t part = std::min(most, from.pieces->iov_len - from.offset);
    const ProgramMemoryAccess unjudged;
    const Submitted how =
        send_small({static_cast<std::byte*>(from.pieces->iov_base) + from.offset, part}, native_code);
    if (how != Submitted::done) return how;
    Counts::add(queue_.counts().transmissions);
    from.pass(part);
  }
  return Submitted::done;
}

std::ptrdiff_t MessageEndpoint::transmit(const iovec* pieces, int count) noexcept {
  Counts& counts = queue_.counts();
  if (count == 1 && held_ == 0 && peer_up_ &&
      pieces->iov_len <= queue_.message_context().message_options().small_message - sizeof(message::Header)) {
    std::int32_t native_code = 0;
    const Submitted how = send_small(*pieces, native_code);
    if (how == Submitted::broken) return native_code < 0 ? native_code : -1;
    if (how == Submitted::done) [[likely]] {
      Counts::add(counts.transmissions);
      data_left(false);
      return static_cast<std::ptrdiff_t>(pieces->iov_len);
    }
  }
  // When the fabric has no room, it gets one buffer to keep: then it tells when there is room again.
  const bool in_pieces = peer_up_ && goes_in_pieces(pieces, count);
  if (in_pieces && held_ != 0) return 0;
  Cursor from{pieces, count};
  std::size_t taken = 0;
  bool under_way = false;
  do {
    std::int32_t native_code = 0;
    Submitted how = in_pieces ? send_pieces(from, native_code) : Submitted::no_room;
    taken = from.taken;
    if (how == Submitted::done) break;
    if (how == Submitted::no_room) how = send_data(from, native_code);
    if (how == Submitted::broken) return native_code < 0 ? native_code : -1;
    if (how == Submitted::no_room) {
      Counts::add(counts.refused_transmissions);
      break;
    }
    Counts::add(counts.transmissions);
    taken = from.taken;
    under_way = under_way || how == Submitted::under_way;
  } while (from.count != 0 && !(in_pieces && under_way));
  if (taken != 0) data_left(under_way);
  return static_cast<std::ptrdiff_t>(taken);
}

// One message, as full as can be.
MessageEndpoint::Submitted MessageEndpoint::send_data(Cursor& from, std::int32_t& native_code) noexcept {
  const auto& options = queue_.message_context().message_options();
  if (!peer_up_ && sequence_out_ >= options.most_early) return Submitted::no_room;
  SendBuffer* const buffer = take_buffer();
  if (buffer == nullptr) return Submitted::no_room;
  buffer->confirmed = false;
  wire::store(buffer->bytes, next_header(message::Kind::data));
  std::byte* at = buffer->bytes + sizeof(message::Header);
  std::size_t room = queue_.buffers().size() - sizeof(message::Header);
  while (from.count != 0 && room != 0) {
    const ProgramMemoryAccess unjudged;
    const std::size_t part = std::min(room, from.pieces->iov_len - from.offset);
    if (part != 0) std::memcpy(at, static_cast<const std::byte*>(from.pieces->iov_base) + from.offset, part);
    at += part;
    room -= part;
    from.pass(part);
  }
  buffer->length = static_cast<std::size_t>(at - buffer->bytes);
  const Submitted how = send(*buffer, native_code);
  if (how == Submitted::done || how == Submitted::under_way) {
    said_up_ = true;
    ++data_out_;
  }
  return how;
}

void MessageEndpoint::ring() noexcept {
  peer_asleep_ = false;
  unrung_ = false;
  queue_.message_context().message_counts().rings.fetch_add(1, std::memory_order_relaxed);
  events().ring_peer();
}

void MessageEndpoint::rung() noexcept {
  const HelperEntry entry(queue_.gate());
  if (!attached_ || !rings_) return;
  if (std::exchange(told_asleep_, false)) queue_.awake_to_.push_back(this);
  rung_ = true;
  rung_at_ = sequence_in_;
  queue_.wake();
}

// A ring that brought nothing may have overtaken its message: then the peer, perhaps asleep as well, is to
// look at what this side has seen, and rings again. So does who sleeps after data of which the peer, taken
// for awake, may know nothing, since its own word may still be under way.
bool MessageEndpoint::tell_asleep() noexcept {
  if (!moving()) {
    lingers_ = false;
    return true;
  }
  if (!said_up_) return false;
  SendBuffer* const buffer = take_buffer();
  if (buffer == nullptr) return false;
  wire::store(buffer->bytes, next_header(message::Kind::asleep));
  wire::store(buffer->bytes + sizeof(message::Header), message::SleepNotice{data_in_});
  buffer->length = sizeof(message::Header) + sizeof(message::SleepNotice);
  buffer->confirmed = queue_.messages_linger();
  std::int32_t native_code = 0;
  // A path that is broken shows with the next data.
  if (send(*buffer, native_code) >= Submitted::no_room) return false;
  const bool in_vain = std::exchange(rung_, false) && rung_at_ == sequence_in_;
  const bool unknown = std::exchange(unrung_, false) && !peer_asleep_ && queue_.messages_linger();
  told_asleep_ = true;
  lingers_ = false;
  if (in_vain || unknown) ring();
  return true;
}

void MessageEndpoint::fabric_failed(std::int32_t native_code, std::string_view text) noexcept {
  if (moving()) path_broken(native_code, text);
}

}  // namespace weft::engine
