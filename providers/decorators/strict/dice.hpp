// Random decisions of any thread, by one seed.
#pragma once

#include <atomic>
#include <cstdint>

#include "decorators/common/random.hpp"

namespace weft::strict {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) noexcept : seed_(decorator::mixed(seed)) {}
  [[nodiscard]] std::uint64_t below(std::uint64_t limit) noexcept {
    return decorator::mixed(seed_ + thrown_.fetch_add(1, std::memory_order_relaxed)) % limit;
  }
  [[nodiscard]] bool one_in(std::uint64_t count) noexcept { return below(count) == 0; }

 private:
  const std::uint64_t seed_;
  std::atomic<std::uint64_t> thrown_{0};
};

}  // namespace weft::strict
