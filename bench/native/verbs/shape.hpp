// How much memory a piece of work takes on each side, and how it is cut, whatever the link is made of.
#pragma once

#include <algorithm>
#include <cstdint>

#include "work.hpp"

namespace weft::native {

inline constexpr std::uint64_t page_size = 4096;
// Above this a copy into the request costs more than it saves on most adapters.
inline constexpr std::uint32_t inline_limit = 64;

[[nodiscard]] inline std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}
[[nodiscard]] inline std::uint64_t size_of(const Work& work) {
  return work.operation == Operation::fetch_add ? 8 : work.size;
}
[[nodiscard]] inline std::uint64_t stride_of(const Work& work) {
  constexpr std::uint64_t cache_line = 64;
  return round_up(size_of(work), cache_line);
}
// Small operations take turns over the cache lines of one page, large ones use one place again and again, so
// that the memory behind them stays in the cache, as in perftest.
[[nodiscard]] inline std::uint64_t slots_of(const Work& work) {
  return std::max<std::uint64_t>(1, page_size / stride_of(work));
}
// Of the two halves, one is sent from, written from and read into, the other received to, written to and read
// by the peer.
[[nodiscard]] inline std::uint64_t half_size_of(const Work& work) {
  return round_up(stride_of(work) * slots_of(work), page_size);
}
[[nodiscard]] inline std::uint32_t receive_depth_of(const Work& work) {
  // Receives in store while the receiver is busy elsewhere; a sender that finds none waits 0.64 ms.
  constexpr std::uint32_t least = 512;
  return std::max(least, 2 * work.queue_depth());
}

}  // namespace weft::native
