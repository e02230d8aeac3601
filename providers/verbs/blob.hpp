// What a peer needs to reach a queue pair, as it travels over the core's control connection (CON-8).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace weft::verbs {

struct Blob {
  static constexpr std::size_t size = 64;

  std::uint32_t pair_number = 0;   // 24 bits
  std::uint32_t first_packet = 0;  // 24 bits
  std::array<std::byte, 16> gid{};
  std::uint16_t lid = 0;
  std::uint8_t mtu = 0;  // enum ibv_mtu
  bool ethernet = false;
  std::uint8_t acknowledge = 0;     // this side's acknowledge timer, as verbs counts it
  std::uint32_t reads_out = 0;      // reads and atomics this side can have under way
  std::uint32_t reads_in = 0;       // and can answer at once
  std::uint64_t flush_address = 0;  // eight readable bytes of this library, for the peer's `flush` (OPS-11)
  std::uint32_t flush_key = 0;

  void encode(std::span<std::byte, size> out) const noexcept;
  // Nothing when a field is out of range: it comes from the network.
  [[nodiscard]] static std::optional<Blob> decode(std::span<const std::byte> bytes) noexcept;
};

}  // namespace weft::verbs
