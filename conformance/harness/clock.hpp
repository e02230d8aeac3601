// Time as the tests measure it: a canary thread sees how long the machine kept everybody waiting, and
// deadlines give that time back, so that a busy machine makes a test slow, not red.
#pragma once

#include <chrono>

namespace conformance {

using Clock = std::chrono::steady_clock;
using Duration = std::chrono::nanoseconds;
using namespace std::chrono_literals;

// Starts the canary of this process; once, before descriptors and threads are counted.
void start_canary();
// All time since its start that the canary should have run and did not.
[[nodiscard]] Duration stall_so_far();
// What the canary itself has taken of the processor: nothing on most machines, much of an emulated one.
[[nodiscard]] Duration canary_processor_time();

class Deadline {
 public:
  explicit Deadline(Duration from_now);
  [[nodiscard]] bool passed() const;
  // Until it passes as things stand now; never negative.
  [[nodiscard]] Duration left() const;

 private:
  [[nodiscard]] Clock::time_point end() const;
  Clock::time_point begin_;
  Duration length_;
  Duration stall_at_begin_;
};

// How long something took, with the stall of the machine taken off.
class Stopwatch {
 public:
  Stopwatch();
  [[nodiscard]] Duration elapsed() const;         // the plain time: for lower bounds
  [[nodiscard]] Duration without_stalls() const;  // for upper bounds

 private:
  Clock::time_point begin_;
  Duration stall_at_begin_;
  Duration held_up_at_begin_;
};

// Calls until it answers true or the time has passed; says whether it did.
template <class Condition>
[[nodiscard]] bool eventually(Duration patience, Condition&& condition);

void pause(Duration time);

template <class Condition>
bool eventually(Duration patience, Condition&& condition) {
  const Deadline deadline(patience);
  while (!condition()) {
    if (deadline.passed()) return condition();
    pause(1ms);
  }
  return true;
}

}  // namespace conformance
