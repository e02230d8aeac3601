// What check tells the program's author: one line per finding, in weft's log at level `warning`; or the line
// and then the end of the process.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "weft/attributes.hpp"
#include "weft/provider/provider.hpp"

namespace weft::check {

enum class Misuse : std::uint8_t {
  overlap,        // two operations under way write to one piece of memory, or one writes what another reads
  altered,        // the source of an operation changed before its completion was taken
  outside,        // a segment or a remote piece that lies nowhere it may
  refused,        // another request that can never work
  second_thread,  // two threads at once in thread mode single
  left_unread,    // completions nobody took
};
inline constexpr std::size_t misuse_count = 6;

class Findings {
 public:
  Findings(provider::Host& host, bool aborts) : host_(host), aborts_(aborts) {}

  void add(Misuse kind, const std::string& text) noexcept;
  [[nodiscard]] std::vector<Counter> counters() const;

 private:
  // A loop that does the same wrong thing a million times is told of so often.
  static constexpr std::uint64_t most_lines = 20;

  provider::Host& host_;
  const bool aborts_;
  std::array<std::atomic<std::uint64_t>, misuse_count> counts_{};
};

}  // namespace weft::check
