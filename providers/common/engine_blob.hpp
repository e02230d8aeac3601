#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace weft::engine {

// What one endpoint's engine tells the peer's in its blob.
struct EngineBlob {
  static constexpr std::size_t size = 24;
  std::uint64_t window = 0;  // bytes of messages without a receive that this side keeps
  bool shared_receives = false;
  bool completes_when_matched = false;  // sends: this side must hear of each that found its receive

  void encode(std::span<std::byte, size> out) const noexcept;
  [[nodiscard]] static std::optional<EngineBlob> decode(std::span<const std::byte> bytes) noexcept;
};

}  // namespace weft::engine
