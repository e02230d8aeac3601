// Things to do at a time. Not thread-safe: guarded by the service's mutex.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

namespace weft::core {

class Timers {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;

  // Names one timer; default-made: none.
  struct Id {
    Time when{};
    std::uint64_t number = 0;
    [[nodiscard]] explicit operator bool() const noexcept { return number != 0; }
    auto operator<=>(const Id&) const noexcept =
        default;  // NOLINT(modernize-use-nullptr): not about pointers
  };

  Id add(Time when, std::function<void()> action);
  // Also for a timer that has run; `id` is none afterwards.
  void cancel(Id& id) noexcept;
  // time_point::max() when there is none.
  [[nodiscard]] Time next() const noexcept;
  // Takes out the next one that is due; an empty function when none is.
  [[nodiscard]] std::function<void()> take_due(Time now);
  [[nodiscard]] std::size_t size() const noexcept { return timers_.size(); }
  void clear() noexcept { timers_.clear(); }

 private:
  std::map<Id, std::function<void()>> timers_;
  std::uint64_t last_number_ = 0;
};

// `now + duration` without running over the end of time.
[[nodiscard]] Timers::Time after(Timers::Time now, std::chrono::nanoseconds duration) noexcept;

}  // namespace weft::core
