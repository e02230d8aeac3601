// Which work requests ask the device for an entry of their own.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

namespace weft::verbs {

// An entry confirms everything before it, so one in a while is enough; but the device takes a slot of its
// ring back only when an entry at or behind it was read. A quarter of the ring never fills it (CMP-2).
class SignalPlan {
 public:
  static constexpr std::uint32_t longest_run = 64;

  explicit constexpr SignalPlan(std::uint32_t depth) noexcept
      : every_(std::clamp(depth / 4, std::uint32_t{1}, longest_run)) {}

  // The next request: true when it is to be signalled.
  [[nodiscard]] constexpr bool next(bool asked) noexcept {
    if (!asked && ++run_ < every_) return false;
    run_ = 0;
    return true;
  }
  // How many requests from here on need no signal.
  [[nodiscard]] constexpr std::uint32_t quiet() const noexcept { return every_ - 1 - run_; }
  // One of these, and one that asked for its signal: next() for those who know the answer.
  constexpr void note_quiet() noexcept { ++run_; }
  constexpr void note_signal() noexcept { run_ = 0; }
  // After many of them: so many more need none.
  constexpr void set_quiet(std::uint32_t quiet) noexcept { run_ = every_ - 1 - quiet; }
  // True when nothing confirms the last request by itself.
  [[nodiscard]] constexpr bool trailing() const noexcept { return run_ != 0; }
  // Requests were taken back; the last signal may be among them.
  constexpr void make_next() noexcept { run_ = every_ - 1; }
  [[nodiscard]] constexpr std::uint32_t every() const noexcept { return every_; }

 private:
  std::uint32_t every_;
  std::uint32_t run_ = 0;  // requests since the last signalled one
};

// Tags of work requests (wr_id). In an entry that reports an error only the tag, the status, the pair's
// number and the vendor's code are valid: so the tag tells the side and the endpoint as well.
struct Tag {
  static constexpr std::uint64_t receive = std::uint64_t{1} << 63;
  static constexpr std::uint64_t shared = std::uint64_t{1} << 62;
  static constexpr std::uint32_t slot_limit = 1U << 24;

  [[nodiscard]] static constexpr std::uint64_t of(std::uint32_t slot, std::uint32_t number) noexcept {
    return (std::uint64_t{slot} << 32) | number;
  }
  // The same tag but for the number.
  static void renumber(std::uint64_t& tag, std::uint32_t number) noexcept {
    if constexpr (std::endian::native == std::endian::little) {
      std::memcpy(&tag, &number, sizeof number);
    } else {
      tag = (tag & ~std::uint64_t{UINT32_MAX}) | number;
    }
  }
  [[nodiscard]] static constexpr std::uint32_t slot(std::uint64_t tag) noexcept {
    return static_cast<std::uint32_t>(tag >> 32) & (slot_limit - 1);
  }
  // The same of a tag of the send side, which has nothing above it.
  [[nodiscard]] static constexpr std::uint32_t send_slot(std::uint64_t tag) noexcept {
    return static_cast<std::uint32_t>(tag >> 32);
  }
  [[nodiscard]] static constexpr std::uint32_t number(std::uint64_t tag) noexcept {
    return static_cast<std::uint32_t>(tag);
  }
};

// Serial numbers of work requests wrap; fewer than 2^31 are under way.
[[nodiscard]] constexpr bool at_or_before(std::uint32_t serial, std::uint32_t limit) noexcept {
  return static_cast<std::int32_t>(serial - limit) <= 0;
}

}  // namespace weft::verbs
