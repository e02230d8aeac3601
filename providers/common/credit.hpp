// What may come without asking: how many messages (grants, one for each posted receive), how many bytes of
// messages that find no receive (the window), and which one-sided operations are known to be done. Counts
// only grow, from the start of the endpoint; what is open is a difference.
#pragma once

#include <cstdint>

#include "unexpected.hpp"
#include "weft/flags.hpp"
#include "wire.hpp"

namespace weft::engine {

// What the peer lets this side send.
struct SendCredit {
  std::uint64_t messages_framed = 0;
  std::uint64_t granted = 0;
  bool grants_singly = false;         // for each message announced (shared receives)
  bool granted_in_bulk = false;       // by the last update
  bool announced = false;             // the message at the head of what is to be framed was announced
  std::uint32_t requests_framed = 0;  // one-sided operations
  std::uint32_t acknowledged = 0;     // of them, modulo 2^32
  std::uint32_t unasked = 0;          // framed since an acknowledgement was asked for
  std::uint32_t ask_every = 1;        // at the latest, so that slots come back
  std::uint64_t window = 0;
  std::uint64_t charged = 0;   // bytes of it used
  std::uint64_t returned = 0;  // and free again

  enum class Leave : std::uint8_t { not_yet, granted, charged };
  // Takes what a message of this length needs (OPS-3).
  [[nodiscard]] Leave take(std::uint64_t stored_length) noexcept {
    if (messages_framed < granted) [[likely]]
      return Leave::granted;
    // A peer that just granted many receives is busy taking messages and will grant more: coming early would
    // only cost it a copy.
    if (granted_in_bulk) return Leave::not_yet;
    const std::uint64_t charge = Unexpected::charge(stored_length);
    if (charged - returned + charge > window) return Leave::not_yet;
    charged += charge;
    return Leave::charged;
  }

  // Whether to ask for an acknowledgement with this operation: to complete it, or to get its slot back, takes
  // one of it or of what is before it.
  [[nodiscard]] bool asks(Operation operation, Flags flags, bool last) noexcept {
    if (operation == Operation::send && requests_framed == acknowledged) return false;
    const bool wanted =
        !has(flags, Flags::unsignalled) || operation == Operation::flush || last || ++unasked >= ask_every;
    if (wanted) unasked = 0;
    return wanted;
  }

  // The answer to a read or an atomic came: all that was before it is done as well.
  void take_answer(std::uint32_t number) noexcept {
    if (static_cast<std::int32_t>(number - acknowledged) > 0) acknowledged = number;
  }
  // False when it cannot be.
  [[nodiscard]] bool take_update(std::uint64_t now_returned, const wire::UpdateExtension& update) noexcept;
};

// What this side lets the peer send, and how much of that the peer has heard.
struct ReceiveCredit {
  std::uint64_t messages_matched = 0;
  std::uint64_t messages_arrived = 0;
  std::uint64_t granted = 0;
  std::uint64_t granted_told = 0;
  std::uint64_t returned = 0;  // bytes of the window
  std::uint64_t returned_told = 0;
  std::uint32_t requests_done = 0;  // one-sided operations carried out
  std::uint32_t requests_done_told = 0;
  bool tell_now = false;     // the peer asked
  std::uint64_t window = 0;  // bytes of early messages that this side keeps

  [[nodiscard]] bool untold() const noexcept {
    return granted != granted_told || requests_done != requests_done_told || returned != returned_told;
  }
  // Fresh receives alone can wait for ever: the peer still has others, else it runs dry. So can bytes of the
  // window when the peer announces what does not fit, as it does to shared receives.
  [[nodiscard]] bool awaited(bool window_can_wait) const noexcept {
    return requests_done != requests_done_told || (returned != returned_told && !window_can_wait);
  }
  // The peer may be waiting, or will be soon. `depth`: the receives it counts with.
  [[nodiscard]] bool peer_runs_dry(std::uint32_t depth) const noexcept {
    const std::uint64_t grants = granted - granted_told;
    if (grants != 0) {
      // Grants the peer still has; negative when it uses the window.
      const auto left = static_cast<std::int64_t>(granted_told - messages_arrived);
      if (grants >= (depth + 1) / 2 || left <= static_cast<std::int64_t>(depth / 8)) return true;
    }
    return returned - returned_told >= window / 4;
  }
  [[nodiscard]] bool peer_is_dry() const noexcept { return granted_told <= messages_arrived; }
  [[nodiscard]] bool owes_half(std::uint32_t depth) const noexcept {
    return granted - granted_told >= (std::uint64_t{depth} + 1) / 2;
  }
  // News that may ride along with something that leaves anyway. Operations done that the peer did not ask
  // about are worth that now and then: to it they are slots, and it asks before they run out.
  [[nodiscard]] bool worth_a_ride(std::uint32_t depth, bool window_can_wait) const noexcept {
    constexpr std::uint32_t many_done = 16;
    return granted - granted_told > depth / 8 || requests_done - requests_done_told >= many_done ||
           returned - returned_told > (window_can_wait ? window / 8 : 0);
  }
  // A one-sided operation of the peer is done; it hears of it with the next update.
  void carried_out(bool asked) noexcept {
    ++requests_done;
    if (asked) tell_now = true;
  }
  // The update that says it all.
  std::byte* store_update(std::byte* at) noexcept {
    at = wire::store(at, wire::Header{static_cast<std::uint8_t>(wire::Type::update), 0, 0, 0, returned});
    at = wire::store(at, wire::UpdateExtension{granted, requests_done, 0});
    granted_told = granted;
    requests_done_told = requests_done;
    returned_told = returned;
    tell_now = false;
    return at;
  }
};

}  // namespace weft::engine
