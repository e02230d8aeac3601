#include "queue.hpp"

#include "context.hpp"
#include "endpoint.hpp"

namespace weft::strict {
namespace {

// How often, and how late.
constexpr std::uint64_t empty_polls = 4;    // one poll in so many finds nothing
constexpr std::uint64_t late_entries = 32;  // after one entry in so many, the next ones are late …
constexpr std::uint64_t most_late = 3000;   // … by up to so many microseconds
constexpr std::uint64_t vain_wakes = 4;     // one sleep in so many ends for nothing

}  // namespace

std::size_t StrictQueue::poll(Completion* out, std::size_t room) noexcept {
  if (context_.inert() || room == 0) return inner().poll(out, room);
  Dice& dice = context_.dice();
  const auto now = Clock::now().time_since_epoch().count();
  // What is late stays in the queue beneath and keeps its room there (CMP-6).
  if (now < not_before_.load(std::memory_order_relaxed) || dice.one_in(empty_polls)) {
    return inner().poll(out, 0);
  }
  const std::size_t count = inner().poll(out, 1);
  if (count == 0) return 0;
  may_wake_for_nothing_.store(true, std::memory_order_relaxed);
  if (dice.one_in(late_entries)) {
    const std::chrono::nanoseconds late = std::chrono::microseconds(dice.below(most_late));
    not_before_.store(now + Clock::duration(late).count(), std::memory_order_relaxed);
  }
  context_.taken(*out);
  return count;
}

bool StrictQueue::arm() noexcept {
  if (!inner().arm()) return false;
  // Once at most for each entry handed out, so that an idle queue comes to rest (PRG-4).
  if (!context_.inert() && context_.dice().one_in(vain_wakes) &&
      may_wake_for_nothing_.exchange(false, std::memory_order_relaxed)) {
    events().readable();
  }
  return true;
}

}  // namespace weft::strict
