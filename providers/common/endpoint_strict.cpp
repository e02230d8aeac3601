// As hard on programs as the contract allows, when the decorator `strict` asks for it
// (provider::StrictSwitches).
#include "context.hpp"
#include "endpoint.hpp"

namespace weft::engine {

// A message that left by a grant had its receive. One that used the window has met its receive when the
// window has got its room back; `operand`, which messages do not need, is the count at which it has.
bool Endpoint::receive_was_there(const SendRecord& record) const noexcept {
  return record.operand == 0 || may_send_.returned >= record.operand;
}

// A plain write stays here until something that is ordered behind it wants to leave, or until the helper's
// tick, which comes within 100 ms (PRG-5).
bool Endpoint::write_may_leave() noexcept {
  if (release_writes_ || state_ == State::closing) return true;
  for (std::uint64_t at = framing_; at != sends_.tail; ++at) {
    if (sends_[at].operation != Operation::write) return true;
  }
  if (!holds_back_) {
    holds_back_ = true;
    group_.note_held_back(*this);
  }
  return false;
}

}  // namespace weft::engine
