#include "findings.hpp"

#include <cstdlib>

namespace weft::check {
namespace {

constexpr std::array<const char*, misuse_count> names = {"misuse_overlap",       "misuse_altered",
                                                         "misuse_outside",       "misuse_refused",
                                                         "misuse_second_thread", "misuse_left_unread"};

}  // namespace

void Findings::add(Misuse kind, const std::string& text) noexcept {
  const std::uint64_t count = counts_[static_cast<std::size_t>(kind)].fetch_add(1) + 1;
  if (count < most_lines || aborts_) {
    host_.log(LogLevel::warning, text);
  } else if (count == most_lines) {
    host_.log(LogLevel::warning, text + " (further findings of this kind are counted only)");
  }
  if (aborts_) std::abort();
}

std::vector<Counter> Findings::counters() const {
  std::vector<Counter> counters;
  for (std::size_t i = 0; i < misuse_count; ++i) counters.push_back({names[i], counts_[i].load()});
  return counters;
}

}  // namespace weft::check
