// What a region's exported key says: the hardware's own key with range and rights around it (MEM-3).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "weft/flags.hpp"

namespace weft::verbs {

struct Key {
  static constexpr std::size_t size = 48;

  std::uint64_t address = 0;
  std::uint64_t length = 0;
  std::uint32_t native = 0;
  Access access = Access::none;

  void encode(std::span<std::byte, size> out) const noexcept;
  // Nothing when the bytes are no key or were altered. A forgery with a right sum is refused by the target's
  // device, unless it guesses one of its 32-bit keys (SEC-2, SEC-3).
  [[nodiscard]] static std::optional<Key> decode(std::span<const std::byte> bytes) noexcept;
};

}  // namespace weft::verbs
