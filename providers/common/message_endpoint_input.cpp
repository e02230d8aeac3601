// Messages as the fabric brings them: perhaps out of order, early, twice, or made up by somebody (SEC-1).
#include <new>

#include "message_context.hpp"
#include "message_endpoint.hpp"

namespace weft::engine {

void MessageEndpoint::take_message(const message::Header& header, const std::byte* payload,
                                   std::size_t length) noexcept {
  const auto kind = static_cast<message::Kind>(header.slot_and_kind >> message::slot_bits);
  const std::uint32_t ahead = header.sequence - sequence_in_;
  if (ahead == 0 && moving()) [[likely]] {
    deliver(kind, payload, length);
    if (kept_count_ != 0) [[unlikely]]
      deliver_kept();
    return;
  }
  if (attached_ && !moving()) return;  // it broke, and waits for its end
  keep(ahead, kind, payload, length);
}

void MessageEndpoint::touch() noexcept {
  if (touched_) return;
  touched_ = true;
  queue_.touched(*this);
}

// In its turn.
void MessageEndpoint::deliver(message::Kind kind, const std::byte* payload, std::size_t length) noexcept {
  ++sequence_in_;
  peer_up_ = true;
  if (kind == message::Kind::data) [[likely]] {
    ++data_in_;
    // Whoever sends takes this side for awake from then on.
    if (told_asleep_) [[unlikely]] {
      told_asleep_ = false;
      queue_.awake_to_.push_back(this);  // has room for all
    }
    touch();
    static_cast<void>(arrived_at(payload, length));
    return;
  }
  if (kind != message::Kind::asleep || length != sizeof(message::SleepNotice)) {
    peer_misbehaved("the peer sent a message of an unknown kind");
    return;
  }
  const auto notice = wire::load<message::SleepNotice>(payload);
  if (notice.seen > data_out_) {
    peer_misbehaved("the peer saw more messages than were sent");
    return;
  }
  // What left meanwhile lies there unseen.
  if (notice.seen == data_out_) {
    peer_asleep_ = true;
  } else {
    ring();
  }
}

void MessageEndpoint::keep(std::uint32_t ahead, message::Kind kind, const std::byte* payload,
                           std::size_t length) noexcept {
  MessageContext& context = queue_.message_context();
  const MessageOptions& options = context.message_options();
  const bool seen = (ahead >> 31) != 0;
  const std::uint32_t most = attached_ ? options.most_ahead : options.most_early;
  if (!seen && ahead >= most) {
    if (attached_) {
      peer_misbehaved("messages came further out of order than any fabric brings them");
    } else {
      too_early_ = true;
    }
    return;
  }
  try {
    if (!seen && kept_ == nullptr) kept_ = std::make_unique<Kept[]>(options.most_ahead);
    Kept* const place = seen ? nullptr : &kept_[(sequence_in_ + ahead) % options.most_ahead];
    if (place == nullptr || place->present) {
      context.message_counts().duplicates.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    place->payload.assign(payload, payload + length);
    place->kind = kind;
    place->present = true;
    ++kept_count_;
    if (ahead != 0) context.message_counts().out_of_order.fetch_add(1, std::memory_order_relaxed);
  } catch (const std::bad_alloc&) {
    if (attached_) {
      path_broken(0, "out of memory for a message that came before its turn");
    } else {
      too_early_ = true;
    }
  }
}

void MessageEndpoint::deliver_kept() noexcept {
  if (too_early_) {
    peer_misbehaved("the peer sent more before this side was up than it may");
    return;
  }
  const std::uint32_t size = queue_.message_context().message_options().most_ahead;
  while (kept_count_ != 0 && moving()) {
    Kept& next = kept_[sequence_in_ % size];
    if (!next.present) return;
    next.present = false;
    --kept_count_;
    // What arrives may end the endpoint, and with it what it kept.
    const std::vector<std::byte> payload = std::move(next.payload);
    deliver(next.kind, payload.data(), payload.size());
  }
}

}  // namespace weft::engine
