// Writes that the fabric carries out by itself (natives.hpp).
#include <algorithm>
#include <utility>

#include "context.hpp"
#include "endpoint.hpp"
#include "program_memory.hpp"

namespace weft::engine {

namespace {

// Beyond so much that waits to be told, nothing is lent: a peer may ask without end and never listen.
constexpr std::size_t most_control = std::size_t{64} * 1024;
// With a peer that was asked to give a region back: less than deregistering has (MEM-5).
constexpr std::chrono::milliseconds patience{300};

}  // namespace

// What is fenced goes natively only once everything before it is done, and in the stream otherwise, which
// keeps the order. Nor does anything go whose completion would wait for an acknowledgement that nobody asked
// for.
bool Endpoint::goes_natively(const SendRecord& record) const noexcept {
  if (natives_->within_record) return true;
  if (!natives_->ready || record.operation != Operation::write ||
      record.length < context_.options().native_from ||
      natives_->borrowed[record.slot].hold != Natives::Hold::held) {
    return false;
  }
  const bool quiet = may_send_.requests_framed == may_send_.acknowledged;
  if (has(record.flags, Flags::fence)) return quiet && reads_head_ == reads_tail_ && !natives_open_;
  return quiet || may_send_.unasked == 0;
}

// The records at the front that go past the stream. False: what comes next has to wait for them.
bool Endpoint::frame_natives() noexcept {
  const bool waited = std::exchange(natives_->waits, false);
  const std::uint64_t before = natives_->sent;
  bool broken = false;
  while (framing_ != sends_.tail && goes_natively(sends_[framing_])) {
    const std::ptrdiff_t taken = hand_over(sends_[framing_]);
    broken = taken < 0;
    natives_->waits = taken == 0;
    if (taken <= 0) break;
  }
  if (waited || natives_->waits) output_waits(natives_->waits);
  if (natives_->sent != before) {
    natives_open_ = true;
    beside_open_ = true;
    await_natives();
  }
  if (broken) path_broken(0, "the fabric does not write to the peer's memory any more");
  return !broken && !natives_open_ && !natives_->within_record && !natives_->waits;
}

// The whole record. 0: the fabric has no room for the rest now; negative: it broke.
std::ptrdiff_t Endpoint::hand_over(SendRecord& record) noexcept {
  const Pieces pieces = record.pieces();
  std::uint64_t skip = framed_bytes_;
  for (std::uint32_t i = 0; i < pieces.count; ++i) {
    const Piece& piece = pieces.first[i];
    while (skip < piece.length) {
      const ProgramMemoryAccess unjudged;
      const std::ptrdiff_t taken = write_natively(record.slot, record.remote_offset + framed_bytes_,
                                                  piece.address + skip, piece.length - skip);
      if (taken <= 0) return taken;
      skip += static_cast<std::uint64_t>(taken);
      framed_bytes_ += static_cast<std::uint64_t>(taken);
      natives_->sent += static_cast<std::uint64_t>(taken);
      natives_->within_record = true;
    }
    skip -= piece.length;
  }
  record.beside = Beside::native;
  record.compare = natives_->sent;
  record.number = may_send_.requests_framed;  // what is before it in the stream completes first
  record.stream_end = 0;
  natives_->borrowed[record.slot].end = natives_->sent;
  natives_->within_record = false;
  framed_bytes_ = 0;
  ++framing_;
  return 1;
}

void Endpoint::natives_arrived(std::uint64_t bytes) noexcept {
  if (!moving()) return;
  natives_->done = bytes;
  natives_open_ = natives_->done != natives_->sent;
  beside_open_ = natives_open_ || offers_open_;
  for (std::size_t slot = 0; natives_->returning != 0 && slot < natives_->borrowed.size(); ++slot) {
    if (natives_->borrowed[slot].hold == Natives::Hold::returning)
      return_if_idle(static_cast<std::uint16_t>(slot));
  }
}

// ---- lending

void Endpoint::lend_slot(std::uint64_t slot) noexcept {
  if (natives_->loans.size() <= slot) natives_->loans.resize(bindings_.size());
  Natives::Loan& loan = natives_->loans[slot];
  if (!natives_->peer_borrows || loan.region != 0 || control_.size() > most_control) return;
  const RegionEntry* const region = regions_.find(bindings_[slot]);
  if (region == nullptr || region->native == 0) return;
  wire::LendExtension extension{};
  const std::size_t length = lend(*region, extension.key);
  if (length == 0) return;
  extension.length = static_cast<std::uint32_t>(length);
  loan = {bindings_[slot], false, {}};
  add_control(wire::Type::lend, loan.region, std::as_bytes(std::span(&extension, 1)),
              static_cast<std::uint16_t>(slot));
}

void Endpoint::recall(std::uint64_t region) noexcept {
  if (natives_ == nullptr || !moving()) return;
  bool any = false;
  for (std::size_t slot = 0; slot < natives_->loans.size(); ++slot) {
    Natives::Loan& loan = natives_->loans[slot];
    if (loan.region != region || loan.cut) continue;
    if (loan.recalled) {
      if (Natives::Clock::now() - loan.recalled_at < patience) continue;
      cut_off();
      break;
    }
    loan.recalled = true;
    loan.recalled_at = Natives::Clock::now();
    add_control(wire::Type::recall, region, {}, static_cast<std::uint16_t>(slot));
    any = true;
  }
  if (any) push_output();
}

// The rest as well: the transport has one way for all of it.
void Endpoint::cut_off() noexcept {
  cut_natives();
  natives_->peer_borrows = false;
  for (Natives::Loan& loan : natives_->loans) loan.cut = true;
}

bool Endpoint::on_returned(const wire::Header& header) noexcept {
  if (natives_ == nullptr || header.slot >= natives_->loans.size() || header.word == 0 ||
      natives_->loans[header.slot].region != header.word) {
    return break_protocol("the peer returned a region that was not lent");
  }
  natives_->loans[header.slot] = {};
  // The slot may mean another region by now. One that the peer does not want is not lent again.
  if (bindings_[header.slot] != header.word) lend_slot(header.slot);
  return true;
}

// ---- borrowing

bool Endpoint::on_lend(const wire::Header& header, const wire::LendExtension& extension) noexcept {
  if (natives_ == nullptr || header.slot >= natives_->borrowed.size() || extension.zero != 0 ||
      extension.length == 0 || extension.length > sizeof extension.key) {
    return break_protocol("the peer lent a region that cannot be");
  }
  Natives::Borrowed& place = natives_->borrowed[header.slot];
  const Import& import = imports_[header.slot];
  // Dropped, and perhaps another one imported in its place, before the peer's word came.
  const bool gone = import.token == 0 || import.released || place.region != header.word;
  if (place.hold != Natives::Hold::none || (gone && control_.size() > most_control))
    return break_protocol("the peer lent a region more often than it was asked for");
  if (!gone && borrow(header.slot, std::span(extension.key).first(extension.length))) {
    place.hold = Natives::Hold::held;
    place.end = 0;
  } else {
    add_control(wire::Type::returned, header.word, {}, header.slot);
  }
  return true;
}

// One that was returned already crossed this on its way.
bool Endpoint::on_recall(const wire::Header& header) noexcept {
  if (natives_ == nullptr || header.slot >= natives_->borrowed.size())
    return break_protocol("the peer recalled a region that it never lent");
  if (natives_->borrowed[header.slot].region == header.word) give_up(header.slot);
  return true;
}

void Endpoint::give_up(std::uint16_t slot) noexcept {
  Natives::Borrowed& place = natives_->borrowed[slot];
  if (place.hold != Natives::Hold::held) return;
  place.hold = Natives::Hold::returning;
  ++natives_->returning;
  return_if_idle(slot);
}

void Endpoint::return_if_idle(std::uint16_t slot) noexcept {
  Natives::Borrowed& place = natives_->borrowed[slot];
  const bool in_use = natives_->within_record && sends_[framing_].slot == slot;
  if (in_use || place.end > natives_->done) return;
  place.hold = Natives::Hold::none;
  --natives_->returning;
  give_up_key(slot);
  add_control(wire::Type::returned, place.region, {}, slot);
}

void Endpoint::end_natives() noexcept {
  stop_natives();
  natives_->borrowed.assign(natives_->borrowed.size(), {});
  natives_->loans.clear();
  natives_->returning = 0;
  natives_->within_record = false;
  natives_open_ = false;
  beside_open_ = offers_open_;
}

}  // namespace weft::engine
