// Event counts of a queue's endpoints, for tests and tuning: written with the gate held, read by anybody.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace weft::verbs {

enum class Count : std::uint8_t {
  doorbells,          // calls that handed send-side work requests to the device
  work_requests,      // of the send side handed over, the library's own included
  signals,            // of these, how many asked for an entry of their own
  tails,              // empty writes of the library that confirm what is before them
  probes,             // empty writes of the library over an idle path
  held,               // operations that waited for room in the device's queue, or were split
  refused_doorbells,  // calls that the device did not take whole
  receive_doorbells,  // calls that handed receives to the device
  receives,           // receives handed over
  polls,              // calls that looked for entries
  entries,            // entries read
  number_of_counts,
  single_posts = number_of_counts  // a doorbell and a work request in one, told as these
};

inline constexpr std::size_t count_names = static_cast<std::size_t>(Count::number_of_counts);
inline constexpr std::array<const char*, count_names> name_of_count = {
    "doorbells",         "work_requests",     "signals",  "tails", "probes", "held",
    "refused_doorbells", "receive_doorbells", "receives", "polls", "entries"};

class Counts {
 public:
  void add(Count what, std::uint64_t amount = 1) noexcept {
    auto& value = values_[static_cast<std::size_t>(what)];
    value.store(value.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }
  void take_back(Count what, std::uint64_t amount) noexcept { add(what, std::uint64_t{0} - amount); }
  [[nodiscard]] std::array<std::uint64_t, count_names> values() const noexcept {
    std::array<std::uint64_t, count_names> result{};
    for (std::size_t i = 0; i < count_names; ++i) result[i] = values_[i].load(std::memory_order_relaxed);
    const std::uint64_t singles = values_[count_names].load(std::memory_order_relaxed);
    result[static_cast<std::size_t>(Count::doorbells)] += singles;
    result[static_cast<std::size_t>(Count::work_requests)] += singles;
    return result;
  }

 private:
  std::array<std::atomic<std::uint64_t>, count_names + 1> values_{};
};

}  // namespace weft::verbs
