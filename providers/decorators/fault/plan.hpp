// What is to go wrong, and when: the language of WEFT_FAULT_PLAN (../README.md) and the decisions.
// One seed decides the same way for the same sequence of calls.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "weft/status.hpp"

namespace weft::fault {

enum class Event : std::uint8_t {
  refuse,         // a connection that this side makes or accepts fails
  again,          // a post answers `again`
  again_receive,  // so does a post of receives
  register_memory,
  delay,  // after an entry was taken, the next ones come later
  end     // after a post, its endpoint ends
};
inline constexpr std::size_t event_count = 6;

// When an event strikes; the occasions of each kind are counted from 1.
struct When {
  double chance = 0;        // in percent; 0: no chance
  std::uint64_t at = 0;     // this occasion only; 0: none
  std::uint64_t every = 0;  // each so-manieth; 0: none
};

class Plan {
 public:
  // Throws Error(invalid_argument) that names the piece that makes no sense.
  explicit Plan(std::string_view text);

  // One more occasion: does it strike?
  [[nodiscard]] bool strikes(Event event) noexcept;
  [[nodiscard]] bool has(Event event) const noexcept { return when_[index(event)].has_value(); }
  [[nodiscard]] Status cause() const noexcept { return cause_; }
  [[nodiscard]] std::chrono::nanoseconds delay() const noexcept { return delay_; }
  [[nodiscard]] std::uint64_t struck() const noexcept { return struck_.load(std::memory_order_relaxed); }

 private:
  [[nodiscard]] static std::size_t index(Event event) noexcept { return static_cast<std::size_t>(event); }
  void read_item(std::string_view item);

  std::uint64_t seed_ = 1;
  Status cause_ = Status::aborted;
  std::chrono::nanoseconds delay_{};
  std::array<std::optional<When>, event_count> when_{};
  std::array<std::atomic<std::uint64_t>, event_count> occasions_{};
  std::atomic<std::uint64_t> struck_{0};
};

}  // namespace weft::fault
