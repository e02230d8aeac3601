#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "harness/clock.hpp"

namespace conformance {

// A thread on the processor of the one that made it, where that one then stays: it sees when just this
// processor was taken away, as the host of an emulated one does, while the canary goes on elsewhere. What the
// watched thread does by itself keeps the witness from nothing: it sleeps most of the time, so the scheduler
// prefers it.
class Witness {
 public:
  Witness();
  ~Witness();
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;

  // All time so far for which the processor stood still. What stands still now is not in it before settle().
  [[nodiscard]] Duration stood_still() const { return Duration(stood_still_.load()); }
  void settle() const;

 private:
  void watch();

  std::atomic<std::int64_t> stood_still_{0};
  std::atomic<std::uint64_t> ticks_{0};
  std::atomic<bool> over_{false};
  std::thread thread_;
};

}  // namespace conformance
