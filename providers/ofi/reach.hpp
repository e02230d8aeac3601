// Whether a peer's port can be reached at all. libfabric tries for ever and does not tell; the peer's kernel
// answers a plain connection even while the process there is stopped, which must not be given up for that
// (ERR-3). Nothing is said on it.
#pragma once

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <span>

namespace weft::ofi {

class Reach {
 public:
  Reach() = default;
  Reach(const Reach&) = delete;
  Reach& operator=(const Reach&) = delete;
  ~Reach() { stop(); }

  // Both are sockaddrs; of `from` only the address counts.
  void begin(std::span<const std::byte> from, std::span<const std::byte> to,
             std::chrono::milliseconds patience) noexcept;
  // 0: it can be reached, or nothing here can find out. EINPROGRESS: not known yet. Else what is wrong.
  [[nodiscard]] int look() noexcept { return result_ == EINPROGRESS ? look_again() : result_; }
  [[nodiscard]] bool failed() const noexcept { return result_ != 0 && result_ != EINPROGRESS; }
  void stop() noexcept;

 private:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] int look_again() noexcept;
  [[nodiscard]] int settle(int result) noexcept;

  int socket_ = -1;
  int result_ = 0;
  Clock::time_point deadline_;
};

}  // namespace weft::ofi
