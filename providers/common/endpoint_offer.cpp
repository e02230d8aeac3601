// Payload that its receiver fetches itself (offers.hpp), at the side where it lies.
#include <algorithm>

#include "context.hpp"
#include "endpoint.hpp"

namespace weft::engine {

// What can only travel in the stream is stopped by open offers: while an answer waits for that nothing new is
// offered. What is fenced waits for what is fetched before it, of which several may be at once.
bool Endpoint::may_offer(const SendRecord& record) const noexcept {
  if (!offers_->peer_pulls || record.piece_count != 1 || record.piece.region == 0 ||
      record.length < context_.options().offer_from)
    return false;
  if (offers_open_ && has(record.flags, Flags::fence)) return false;
  return answers_head_ == answers_tail_ || !needs_stream(answers_[answers_head_ & (answers_.size() - 1)]);
}

bool Endpoint::needs_stream(const Answer& answer) const noexcept {
  return !answer.atomic && answer.piece.length > copy_below_ && !may_be_offered(answer);
}

bool Endpoint::may_be_offered(const Answer& answer) const noexcept {
  return offers_ != nullptr && offers_->peer_pulls && !answer.in_stream &&
         answer.piece.length >= context_.options().offer_from;
}

void Endpoint::put_offer(Outgoing& out, std::span<const std::byte> token, std::uint64_t length,
                         std::uint64_t region) noexcept {
  std::byte* at = out.copy_in(sizeof(wire::Header) + token.size());
  at = wire::store(at, wire::Header{static_cast<std::uint8_t>(wire::Type::offer), 0, 0,
                                    static_cast<std::uint32_t>(token.size()), length});
  std::copy(token.begin(), token.end(), at);
  offers_->add(stream_framed_ + out.total(), region);
  offers_open_ = true;
}

// The operation's first frame without payload, and the offer in its place.
void Endpoint::frame_offer(Outgoing& out, SendRecord& record, std::span<const std::byte> token) noexcept {
  frame_start(out, record, 0);
  put_offer(out, token, record.length, 0);
  record.stream_end = stream_framed_ + out.total();
  record.offered = true;
  record.compare = offers_->made;
  ++framing_;
}

// So with an answer. False: not now.
bool Endpoint::frame_answer_offer(Outgoing& out, Answer& answer) noexcept {
  if (offers_open_ && (offers_->stalls_records || offers_->is_full())) return false;
  if (!out.has_room(wire::max_header + sizeof(wire::Header) + wire::max_token)) return false;
  std::array<std::byte, wire::max_token> token;
  const std::size_t length = offer(answer.piece, token);
  if (length == 0) {
    answer.in_stream = true;
    return true;
  }
  wire::store(out.copy_in(sizeof(wire::Header)),
              wire::Header{static_cast<std::uint8_t>(wire::Type::read_data), 0, 0, 0, 0});
  put_offer(out, std::span(token).first(length), answer.piece.length, answer.piece.region);
  ++answers_head_;
  return true;
}

bool Endpoint::on_taken(const wire::Header& header) noexcept {
  if (offers_ == nullptr || header.word <= offers_->taken || header.word > offers_->made)
    return break_protocol("the peer took what was not offered");
  offers_->taken = header.word;
  offers_open_ = offers_->taken != offers_->made;
  offers_taken(header.word);
  return true;
}

}  // namespace weft::engine
