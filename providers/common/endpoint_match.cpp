// Messages meet receives (OPS-3, ERR-1, RCQ-1).
#include <cstdio>
#include <new>

#include "context.hpp"
#include "endpoint.hpp"
#include "shared_receives.hpp"

namespace weft::engine {

// A receive for the next message is at the front of receives_; with a shared queue one is taken over from it.
bool Endpoint::receive_ready() noexcept {
  if (!receives_.empty()) return true;
  if (shared_ == nullptr || !shared_->take(receives_.back())) return false;
  ++receives_.tail;
  return true;
}

// A message of `total` bytes begins: straight into its receive, which so many that are not complete yet have
// theirs before, or into the window when it came early.
bool Endpoint::begin_message(std::uint64_t total, bool charged, std::uint32_t ahead) noexcept {
  ++may_come_.messages_arrived;
  peer_announced_ = false;  // it came, granted or not
  if ((stored_ == nullptr || stored_->empty()) && receive_ready()) {
    ReceiveRecord& record = receives_[receives_.head + ahead];
    if (total > record.capacity) return fail_truncated(total);
    if (charged) may_come_.returned += Unexpected::charge(total);
    operation_.sink.start(record.pieces());
    return true;
  }
  if (!charged) return break_protocol("the peer sent a message without a grant");
  return store_message(total);
}

bool Endpoint::store_message(std::uint64_t stored) noexcept {
  if (stored_ == nullptr) {
    try {
      stored_ = std::make_unique<Unexpected>(context_.options().window);
    } catch (const std::bad_alloc&) {
      fail(Status::aborted, 0, 0, "out of memory for a message that came before its receive");
      return false;
    }
  }
  if (!stored_->fits(stored)) return break_protocol("the peer sent more early messages than agreed");
  Unexpected::Message& message = stored_->add(stored);
  message.has_immediate = operation_.has_immediate;
  message.immediate = operation_.immediate;
  arriving_ = Transfer::Kind::stored_message;
  operation_.sink.start(stored_->last_pieces());
  if (shared_ != nullptr) shared_->wait(*this);
  return true;
}

// Hands stored messages to receives, in order. False when the endpoint broke.
bool Endpoint::match_stored() noexcept {
  while (stored_ != nullptr && !stored_->empty()) {
    Unexpected::Message& message = stored_->front();
    if (!message.complete) return true;
    if (!receive_ready()) {
      if (shared_ != nullptr) shared_->wait(*this);
      return true;
    }
    ReceiveRecord& record = receives_.front();
    if (message.stored > record.capacity) return fail_truncated(message.stored);
    Sink sink;
    sink.start(record.pieces());
    const Pieces from = stored_->front_pieces();
    for (std::uint32_t i = 0; i < from.count; ++i) sink.put(from.first[i].address, from.first[i].length);
    const Unexpected::Message taken = message;
    may_come_.returned += stored_->pop();
    complete_receive(taken.length, taken.has_immediate, taken.immediate);
    if (state_ == State::ended) return false;
  }
  return true;
}

// Receives were posted: serve what waits for them.
void Endpoint::match_waiting() noexcept {
  if (state_ == State::ended || state_ == State::preparing) return;
  if (!match_stored()) return;
  if (peer_announced_ && (stored_ == nullptr || stored_->empty())) {
    if (receive_ready()) {
      may_come_.granted = may_come_.messages_arrived + 1;
      may_come_.tell_now = true;
    } else if (shared_ != nullptr) {
      shared_->wait(*this);
    }
  }
  if (moving() && update_due()) push_output();
  note_untold();
}

void Endpoint::complete_receive(std::uint64_t bytes, bool has_immediate, std::uint32_t immediate) noexcept {
  ReceiveRecord& record = receives_.front();
  if (silenced_) {
    group_.release(1);
  } else {
    group_.push_filled([&](Completion& entry) {
      fill(entry, record.context, bytes, Operation::receive, Status::ok);
      entry.has_immediate = has_immediate;
      entry.immediate = has_immediate ? immediate : 0;
    });
  }
  if (record.spill != nullptr) group_.spills().give(record.spill);
  ++receives_.head;
  message_matched();
}

void Endpoint::message_matched() noexcept {
  ++may_come_.messages_matched;
  if (pending_end_ && may_come_.messages_matched >= pending_end_->messages) end_now(*pending_end_);
}

// The receive at the front is at fault; end() gives it its status (ERR-1). The peer learns which message it
// was.
bool Endpoint::fail_truncated(std::uint64_t length) noexcept {
  receive_at_fault_ = true;
  if (!moving()) {
    // The peer closed and its path is gone already: the end that waits for messages comes now.
    if (pending_end_) end_now(*pending_end_);
    return false;
  }
  std::array<char, 128> text{};
  const int written = std::snprintf(
      text.data(), text.size(), "a message of %llu bytes met a receive of %llu bytes",
      static_cast<unsigned long long>(length), static_cast<unsigned long long>(receives_.front().capacity));
  fail(Status::truncated, may_come_.messages_matched + 1, 0,
       std::string_view(text.data(), written > 0 ? static_cast<std::size_t>(written) : 0));
  return false;
}

}  // namespace weft::engine
