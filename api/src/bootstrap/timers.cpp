#include "bootstrap/timers.hpp"

namespace weft::core {

Timers::Id Timers::add(Time when, std::function<void()> action) {
  const Id id{when, ++last_number_};
  timers_.emplace(id, std::move(action));
  return id;
}

void Timers::cancel(Id& id) noexcept {
  if (id) timers_.erase(id);
  id = {};
}

Timers::Time Timers::next() const noexcept {
  return timers_.empty() ? Time::max() : timers_.begin()->first.when;
}

std::function<void()> Timers::take_due(Time now) {
  if (timers_.empty() || timers_.begin()->first.when > now) return {};
  auto node = timers_.extract(timers_.begin());
  return std::move(node.mapped());
}

Timers::Time after(Timers::Time now, std::chrono::nanoseconds duration) noexcept {
  if (duration <= std::chrono::nanoseconds::zero()) return now;
  if (duration >= Timers::Time::max() - now) return Timers::Time::max();
  return now + std::chrono::duration_cast<Timers::Clock::duration>(duration);
}

}  // namespace weft::core
