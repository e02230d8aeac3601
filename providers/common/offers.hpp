// Payload that its receiver fetches itself, so that it is copied only once: in place of the bytes travels an
// offer, a token by which the receiver's transport can read them where they lie. Writes and messages are
// fetched by the target, which checks the operation first, as always; answers to reads by the initiator, once
// the target has checked. Then the stream stands still at that side until the bytes are there, which keeps
// every order; only further offers are taken out of it beforehand, as far as they cannot be told apart from
// what came in turn, so that the fabric has always something to do. `taken` tells that the memory is no
// longer needed. How that works together stands in api/design.md.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "transfer.hpp"
#include "wire.hpp"

namespace weft::engine {

// Payload that is being fetched.
struct Fetch {
  Transfer transfer;
  Transfer::Kind kind = Transfer::Kind::none;
  std::array<std::byte, wire::max_token> token_bytes{};
  std::size_t token_length = 0;

  [[nodiscard]] std::span<const std::byte> token() const noexcept {
    return std::span(token_bytes).first(token_length);
  }
  // It takes the receive of a message.
  [[nodiscard]] bool takes_receive() const noexcept {
    return kind == Transfer::Kind::message || kind == Transfer::Kind::stored_message ||
           kind == Transfer::Kind::notified_write;
  }
  [[nodiscard]] bool is_message() const noexcept {
    return kind == Transfer::Kind::message || kind == Transfer::Kind::stored_message;
  }
};

struct Offers {
  explicit Offers(std::uint32_t fetches_at_once)
      : fetches(std::clamp<std::size_t>(fetches_at_once, 1, most_fetches)) {}

  static constexpr std::size_t most_open = 16;
  static constexpr std::size_t most_fetches = 16;
  // Bytes of the stream behind the oldest open offer from which on nothing more is framed; control frames,
  // which the peer may be waiting for, go on up to the second; and what the other side keeps of them.
  static constexpr std::uint64_t most_behind = std::uint64_t{32} * 1024;
  static constexpr std::uint64_t most_control_behind = std::uint64_t{128} * 1024;
  static constexpr std::uint64_t most_waiting = std::uint64_t{256} * 1024;

  // ---- what this side offered
  bool peer_pulls = false;
  bool stalls_records = false;  // open offers hold up operations whose payload travels in the stream
  std::uint64_t made = 0;       // since the start
  std::uint64_t taken = 0;
  std::array<std::uint64_t, most_open> ends_at{};  // where in the stream each open one ends
  std::array<std::uint64_t, most_open> regions{};  // of those that are answers; 0: an operation's own

  [[nodiscard]] bool is_full() const noexcept { return made - taken == most_open; }
  void add(std::uint64_t stream_end, std::uint64_t region) noexcept {
    regions[made % most_open] = region;
    ends_at[made++ % most_open] = stream_end;
  }
  [[nodiscard]] std::uint64_t behind_oldest(std::uint64_t stream_end) const noexcept {
    return stream_end - ends_at[taken % most_open];
  }
  [[nodiscard]] bool answers_from(std::uint64_t region) const noexcept {
    for (std::uint64_t at = taken; at != made; ++at) {
      if (regions[at % most_open] == region) return true;
    }
    return false;
  }

  // ---- what the peer offered: fetches from `fetched` to `begun` are under way, numbered since the start
  Transfer token_in;               // while the token arrives
  Transfer* offered_to = nullptr;  // what an offer may be for if it comes next
  std::vector<Fetch> fetches;      // so many at once; never longer or shorter
  std::uint64_t fetched = 0;
  std::uint64_t begun = 0;
  std::vector<std::byte> waiting;  // the stream behind the offer that is being fetched
  std::size_t waiting_at = 0;      // what is before was parsed
  bool parses_waiting = false;

  [[nodiscard]] Fetch& fetch(std::uint64_t number) noexcept { return fetches[number % fetches.size()]; }
  [[nodiscard]] const Fetch& fetch(std::uint64_t number) const noexcept {
    return fetches[number % fetches.size()];
  }
  // What is still to come of them.
  [[nodiscard]] std::uint64_t bytes_left() const noexcept {
    std::uint64_t sum = 0;
    for (std::uint64_t at = fetched; at != begun; ++at) sum += fetch(at).transfer.left;
    return sum;
  }
  template <class Which>
  [[nodiscard]] std::uint32_t count(const Which& which) const noexcept {
    std::uint32_t found = 0;
    for (std::uint64_t at = fetched; at != begun; ++at) found += which(fetch(at)) ? 1 : 0;
    return found;
  }
};

}  // namespace weft::engine
