// Small seeded random numbers: the same seed decides the same way, whatever the machine.
#pragma once

#include <cstdint>

namespace weft::decorator {

[[nodiscard]] constexpr std::uint64_t mixed(std::uint64_t value) noexcept {
  value += 0x9e3779b97f4a7c15U;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31);
}

class Random {
 public:
  explicit constexpr Random(std::uint64_t seed) noexcept : state_(mixed(seed)) {}
  constexpr std::uint64_t next() noexcept { return mixed(state_++); }
  [[nodiscard]] constexpr std::uint64_t below(std::uint64_t limit) noexcept { return next() % limit; }
  [[nodiscard]] constexpr bool one_in(std::uint64_t count) noexcept { return below(count) == 0; }

 private:
  std::uint64_t state_;
};

}  // namespace weft::decorator
