// Payload that the peer offered (offers.hpp): fetching it, while the stream stands still, and taking further
// offers out of what waits there.
#include <algorithm>
#include <new>
#include <utility>

#include "context.hpp"
#include "endpoint.hpp"

namespace weft::engine {

bool Endpoint::begin_offer(const wire::Header& header) noexcept {
  Transfer* const due = offers_ == nullptr ? nullptr : offers_->offered_to;
  if (due == nullptr || header.word == 0 || header.word != due->left || due->left != due->total)
    return break_protocol("the peer offered payload that is not due");
  if (header.length == 0 || header.length > wire::max_token)
    return break_protocol("the peer sent an offer with a token of an impossible length");
  Offers& offers = *offers_;
  Fetch& fetch = offers.fetch(offers.begun);  // one is free: none is under way, or look_ahead() saw to it
  fetch.token_length = header.length;
  offers.token_in.total = offers.token_in.left = header.length;
  offers.token_in.sink.start(Piece{fetch.token_bytes.data(), header.length, 0});
  open_ = &offers.token_in;
  frame_left_ = header.length;
  return true;
}

// The token is there.
bool Endpoint::begin_fetch() noexcept {
  Offers& offers = *offers_;
  Fetch& fetch = offers.fetch(offers.begun);
  const Transfer* const due = std::exchange(offers.offered_to, nullptr);
  fetch.transfer = *due;
  if (due == &answer_in_) {
    fetch.kind = Transfer::Kind::answer;
    answer_arriving_ = false;
  } else {
    fetch.kind = std::exchange(arriving_, Transfer::Kind::none);
  }
  pulling_ = true;
  begin_pull(offers.begun++);
  return true;
}

void Endpoint::pulled(std::uint64_t number, std::uint64_t length) noexcept {
  Offers& offers = *offers_;
  Transfer& transfer = offers.fetch(number).transfer;
  transfer.sink.advance(length);
  transfer.left -= length;
  while (pulling_ && offers.fetch(offers.fetched).transfer.left == 0) {
    if (!finish_fetch()) return;
  }
  if (pulling_) {
    look_ahead();
  } else {
    take_waiting();
  }
}

// The oldest.
bool Endpoint::finish_fetch() noexcept {
  Offers& offers = *offers_;
  const Fetch& fetch = offers.fetch(offers.fetched);
  const Transfer::Kind kind = fetch.kind;
  if (kind != Transfer::Kind::answer) operation_ = fetch.transfer;
  ++offers.fetched;
  owes_taken_ = true;
  pulling_ = offers.fetched != offers.begun;
  if (kind == Transfer::Kind::answer) {
    take_answer(sends_[reads_[reads_head_ & (reads_.size() - 1)]]);
    return true;
  }
  arriving_ = kind;
  return finish_operation() && moving();
}

// The stream goes on when the offers are fetched. What a peer may send until then is little.
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
  look_ahead();
  return moving();
}

void Endpoint::take_waiting() noexcept {
  Offers& offers = *offers_;
  if (offers.waiting.empty()) return;
  const std::size_t from = std::exchange(offers.waiting_at, offers.waiting.size());
  offers.parses_waiting = true;
  static_cast<void>(consume(offers.waiting.data() + from, offers.waiting.size() - from));
  offers.parses_waiting = false;
  if (offers.waiting_at != offers.waiting.size()) {
    look_ahead();
    return;
  }
  offers.waiting.clear();
  offers.waiting_at = 0;
}

// Takes out of what waits what may come before its turn.
void Endpoint::look_ahead() noexcept {
  Offers& offers = *offers_;
  const std::uint64_t most_bytes = context_.options().fetch_bytes_at_once;
  while (pulling_ && offers.begun - offers.fetched < offers.fetches.size() &&
         offers.bytes_left() < most_bytes) {
    const auto rest = std::span<const std::byte>(offers.waiting).subspan(offers.waiting_at);
    const std::size_t size = size_ahead(rest);
    if (size == 0) return;
    offers.waiting_at += size;
    // One frame, or an operation's first and the offer.
    const std::size_t first = wire::header_size(static_cast<std::uint8_t>(rest[0]));
    if (!begin_frame(rest.data())) return;
    if (size == first) continue;
    if (!begin_frame(rest.data() + first)) return;
    offers.token_in.sink.put(rest.data() + first + sizeof(wire::Header), offers.token_in.left);
    frame_left_ = 0;
    open_ = nullptr;
    if (!begin_fetch()) return;
  }
}

// Bytes of the frames at the front that may come before their turn: what tells of this side's own operations,
// or an operation whose payload is offered and which could be carried out if what is being fetched were there
// already. 0: there is no such thing, or not all of it is here. What is wrong with it is found in its turn.
std::size_t Endpoint::size_ahead(std::span<const std::byte> bytes) const noexcept {
  if (bytes.size() < sizeof(wire::Header)) return 0;
  const auto header = wire::load<wire::Header>(bytes.data());
  const auto type = static_cast<wire::Type>(header.type);
  const std::size_t first = wire::header_size(header.type);
  if (type == wire::Type::update || type == wire::Type::taken) return bytes.size() < first ? 0 : first;
  if (type != wire::Type::send && type != wire::Type::write && type != wire::Type::read_data) return 0;
  if (header.length != 0 || bytes.size() < first + sizeof(wire::Header)) return 0;
  const auto offer = wire::load<wire::Header>(bytes.data() + first);
  if (offer.type != static_cast<std::uint8_t>(wire::Type::offer) || offer.length == 0 ||
      offer.length > wire::max_token)
    return 0;
  const std::size_t size = first + sizeof(wire::Header) + offer.length;
  if (bytes.size() < size) return 0;
  return comes_ahead(header, bytes.data() + sizeof(wire::Header)) ? size : 0;
}

bool Endpoint::comes_ahead(const wire::Header& header, const std::byte* extension) const noexcept {
  const auto receive_for = [&](std::uint64_t length) {
    const std::uint64_t ahead = receives_ahead();
    return shared_ == nullptr && (stored_ == nullptr || stored_->empty()) && receives_.size() > ahead &&
           length <= receives_[receives_.head + ahead].capacity;
  };
  if (header.type == static_cast<std::uint8_t>(wire::Type::send)) return receive_for(header.word);
  if (header.type == static_cast<std::uint8_t>(wire::Type::read_data)) {
    const std::uint32_t at = reads_head_ + answers_ahead();
    return at != reads_tail_ && sends_[reads_[at & (reads_.size() - 1)]].operation == Operation::read;
  }
  const auto access = wire::load<wire::AccessExtension>(extension);
  return accessible(access.slot, header.word, access.total, Access::remote_write) != nullptr &&
         ((header.flags & wire::immediate) == 0 || receive_for(0));
}

std::uint32_t Endpoint::receives_ahead() const noexcept {
  return !pulling_ ? 0 : offers_->count([](const Fetch& fetch) { return fetch.takes_receive(); });
}

std::uint32_t Endpoint::answers_ahead() const noexcept {
  return !pulling_ ? 0
                   : offers_->count([](const Fetch& fetch) { return fetch.kind == Transfer::Kind::answer; });
}

bool Endpoint::fetches_into(std::uint64_t region) const noexcept {
  return pulling_ && offers_->count([region](const Fetch& fetch) {
    return fetch.kind != Transfer::Kind::answer && fetch.transfer.sink.uses(region);
  }) != 0;
}

// What broke off: messages that arrived in part.
std::uint32_t Endpoint::torn_messages() const noexcept {
  const bool torn = arriving_ == Transfer::Kind::message || arriving_ == Transfer::Kind::stored_message;
  return (torn ? 1 : 0) +
         (offers_ == nullptr ? 0 : offers_->count([](const Fetch& fetch) { return fetch.is_message(); }));
}

void Endpoint::stop_pulling() noexcept {
  pulling_ = false;
  stop_pull();
}

}  // namespace weft::engine
