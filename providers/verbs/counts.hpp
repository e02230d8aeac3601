// Event counts of a queue's endpoints, for tests and tuning: written and read with the gate held.
#pragma once

#include <array>
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
  // A doorbell with one request, and a poll that read one entry: told as two of the above.
  single_posts = number_of_counts,
  single_receives,
  single_entries
};

inline constexpr std::size_t count_names = static_cast<std::size_t>(Count::number_of_counts);
inline constexpr std::array<const char*, count_names> name_of_count = {
    "doorbells",         "work_requests",     "signals",  "tails", "probes", "held",
    "refused_doorbells", "receive_doorbells", "receives", "polls", "entries"};

class Counts {
 public:
  void add(Count what, std::uint64_t amount = 1) noexcept {
    values_[static_cast<std::size_t>(what)] += amount;
  }
  [[nodiscard]] std::uint64_t of(Count what) const noexcept {
    return values_[static_cast<std::size_t>(what)];
  }
  void take_back(Count what, std::uint64_t amount) noexcept { add(what, std::uint64_t{0} - amount); }
  [[nodiscard]] std::array<std::uint64_t, count_names> values() const noexcept {
    std::array<std::uint64_t, count_names> result{};
    for (std::size_t i = 0; i < count_names; ++i) result[i] = values_[i];
    const auto add = [&](Count what, Count singles) {
      result[static_cast<std::size_t>(what)] += values_[static_cast<std::size_t>(singles)];
    };
    add(Count::doorbells, Count::single_posts);
    add(Count::work_requests, Count::single_posts);
    add(Count::receive_doorbells, Count::single_receives);
    add(Count::receives, Count::single_receives);
    add(Count::polls, Count::single_entries);
    add(Count::entries, Count::single_entries);
    return result;
  }

 private:
  std::array<std::uint64_t, count_names + 3> values_{};
};

}  // namespace weft::verbs
