// Payload that its target fetches itself, so that it is copied only once: in place of the bytes travels an
// offer, a token by which the transport of the target can read them where they lie. The target checks the
// operation first, as always; then the stream stands still at its side until the bytes are there, which keeps
// every order. Its `taken` tells that the memory is no longer needed. How that works together stands in
// api/design.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "transfer.hpp"
#include "wire.hpp"

namespace weft::engine {

struct Offers {
  static constexpr std::size_t most_open = 16;
  // Bytes of the stream that leave behind the oldest open offer, before what one transmission copies
  // (Outgoing::buffer_size); and what the target keeps of them.
  static constexpr std::uint64_t most_behind = std::uint64_t{32} * 1024;
  static constexpr std::uint64_t most_waiting = std::uint64_t{256} * 1024;

  // ---- what this side offered
  bool peer_pulls = false;
  std::uint64_t made = 0;  // since the start
  std::uint64_t taken = 0;
  std::array<std::uint64_t, most_open> ends_at{};  // where in the stream each open one ends

  [[nodiscard]] bool is_full() const noexcept { return made - taken == most_open; }
  void add(std::uint64_t stream_end) noexcept { ends_at[made++ % most_open] = stream_end; }
  [[nodiscard]] std::uint64_t behind_oldest(std::uint64_t stream_end) const noexcept {
    return stream_end - ends_at[taken % most_open];
  }

  // ---- what the peer offered
  Transfer token_in;  // while the token arrives
  std::array<std::byte, wire::max_token> token_bytes{};
  std::size_t token_length = 0;
  std::uint64_t fetched = 0;       // offers, since the start
  std::vector<std::byte> waiting;  // the stream behind the offer that is being fetched
  std::size_t waiting_at = 0;      // what is before was parsed
  bool parses_waiting = false;

  [[nodiscard]] std::span<const std::byte> token() const noexcept {
    return std::span(token_bytes).first(token_length);
  }
};

}  // namespace weft::engine
