// Time stamps that cost a few nanoseconds: in a guest the system's clock may be a system call.
#pragma once

#include <chrono>
#include <cstdint>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace weft::native {

inline std::uint64_t ticks() noexcept {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

// Started before and read after a stretch of work, it tells how long one tick was during that stretch.
class TickScale {
 public:
  [[nodiscard]] double seconds_so_far() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_time_).count();
  }
  [[nodiscard]] double microseconds_per_tick() const {
    return seconds_so_far() * 1e6 / static_cast<double>(ticks() - start_ticks_);
  }

 private:
  std::chrono::steady_clock::time_point start_time_ = std::chrono::steady_clock::now();
  std::uint64_t start_ticks_ = ticks();
};

}  // namespace weft::native
