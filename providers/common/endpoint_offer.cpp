// Payload that its target fetches itself (offers.hpp): offering it, and standing still while it is fetched.
#include <algorithm>
#include <new>
#include <utility>

#include "context.hpp"
#include "endpoint.hpp"

namespace weft::engine {

// Answers to reads travel in the stream, which an open offer stops: while one waits nothing new is offered.
bool Endpoint::may_offer(const SendRecord& record) const noexcept {
  return offers_->peer_pulls && record.piece_count == 1 && record.piece.region != 0 &&
         record.length >= context_.options().offer_from && answers_head_ == answers_tail_;
}

// The operation's first frame without payload, and the offer in its place.
void Endpoint::frame_offer(Outgoing& out, SendRecord& record, std::span<const std::byte> token) noexcept {
  frame_start(out, record, 0);
  std::byte* at = out.copy_in(sizeof(wire::Header) + token.size());
  at = wire::store(at, wire::Header{static_cast<std::uint8_t>(wire::Type::offer), 0, 0,
                                    static_cast<std::uint32_t>(token.size()), record.length});
  std::copy(token.begin(), token.end(), at);
  record.stream_end = stream_framed_ + out.total();
  offers_->add(record.stream_end);
  offers_open_ = true;
  record.offered = true;
  record.compare = offers_->made;
  ++framing_;
}

bool Endpoint::begin_offer(const wire::Header& header) noexcept {
  if (offers_ == nullptr || arriving_ == Transfer::Kind::none || header.word == 0 ||
      header.word != operation_.left || operation_.left != operation_.total) {
    return break_protocol("the peer offered payload that is not due");
  }
  if (header.length == 0 || header.length > wire::max_token)
    return break_protocol("the peer sent an offer with a token of an impossible length");
  Offers& offers = *offers_;
  offers.token_length = header.length;
  offers.token_in.total = offers.token_in.left = header.length;
  offers.token_in.sink.start(Piece{offers.token_bytes.data(), header.length, 0});
  return expect_payload(offers.token_in, header.length);
}

void Endpoint::pulled(std::uint64_t length) noexcept {
  operation_.sink.advance(length);
  operation_.left -= length;
  if (operation_.left != 0) return;
  pulling_ = false;
  add_control(wire::Type::taken, ++offers_->fetched);
  if (finish_operation()) take_waiting();
}

// The stream goes on when the offer is fetched. What a peer may send until then is little.
bool Endpoint::keep_waiting(const std::byte* bytes, std::size_t length) noexcept {
  Offers& offers = *offers_;
  if (offers.parses_waiting) {
    offers.waiting_at = static_cast<std::size_t>(bytes - offers.waiting.data());
    return true;
  }
  if (offers.waiting_at != 0) {
    offers.waiting.erase(offers.waiting.begin(),
                         offers.waiting.begin() + static_cast<std::ptrdiff_t>(offers.waiting_at));
    offers.waiting_at = 0;
  }
  if (offers.waiting.size() + length > Offers::most_waiting)
    return break_protocol("the peer sent more behind an offer than it may");
  try {
    offers.waiting.insert(offers.waiting.end(), bytes, bytes + length);
  } catch (const std::bad_alloc&) {
    fail(Status::aborted, 0, 0, "out of memory for what came behind an offer");
    return false;
  }
  return true;
}

void Endpoint::take_waiting() noexcept {
  Offers& offers = *offers_;
  if (offers.waiting.empty()) return;
  const std::size_t from = std::exchange(offers.waiting_at, offers.waiting.size());
  offers.parses_waiting = true;
  static_cast<void>(consume(offers.waiting.data() + from, offers.waiting.size() - from));
  offers.parses_waiting = false;
  if (offers.waiting_at != offers.waiting.size()) return;
  offers.waiting.clear();
  offers.waiting_at = 0;
}

void Endpoint::stop_pulling() noexcept {
  pulling_ = false;
  stop_pull();
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
