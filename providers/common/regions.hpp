// Registered regions of a context, as the engine checks them: by token for local segments, by token and
// secret for the peer's requests. Looking up takes no lock; registering and deregistering are control path.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "weft/flags.hpp"

namespace weft::engine {

struct Secret {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  [[nodiscard]] bool operator==(const Secret&) const noexcept = default;
};

// What a region's exported key says. Altered bytes are noticed on import by the sum; a key forged with a
// right sum is noticed by the target, which compares the secret (MEM-3, MEM-4, SEC-2).
struct Key {
  static constexpr std::size_t size = 56;
  std::uint64_t region = 0;
  std::uint64_t length = 0;
  Access access = Access::none;
  std::uint32_t misalignment =
      0;  // of the region's first byte, modulo 8: atomics need aligned addresses (OPS-5)
  Secret secret;

  void encode(std::span<std::byte, size> out) const noexcept;
  [[nodiscard]] static std::optional<Key> decode(std::span<const std::byte> bytes) noexcept;
};

struct RegionEntry {
  std::atomic<std::uint64_t> token{0};  // 0: free. Written last, cleared first
  std::byte* address = nullptr;
  std::uint64_t length = 0;
  Access access = Access::none;
  Secret secret;
  std::uint64_t native = 0;  // what the fabric needs beside it, for instance its own key
};

class RegionTable {
 public:
  RegionTable() = default;
  RegionTable(const RegionTable&) = delete;
  RegionTable& operator=(const RegionTable&) = delete;

  // Throws Error(resource_limit) when the table is full (2^20 regions).
  const RegionEntry& add(std::byte* address, std::uint64_t length, Access access, Secret secret,
                         std::uint64_t native = 0);
  // Two steps: no new access from here, then the place can be used again. Between them transfers may still
  // run out.
  void retire(std::uint64_t token) noexcept;
  void free(std::uint64_t token) noexcept;
  // The entry of a token that was given out and not freed. Control path.
  [[nodiscard]] const RegionEntry& at(std::uint64_t token) const noexcept {
    const std::uint64_t index = token & index_mask;
    return (*chunks_[index >> chunk_bits].load(std::memory_order_acquire))[index & (chunk_size - 1)];
  }

  // The live entry of the token, or null. Data path.
  [[nodiscard]] const RegionEntry* find(std::uint64_t token) const noexcept {
    const std::uint64_t index = token & index_mask;
    const Chunk* chunk = chunks_[index >> chunk_bits].load(std::memory_order_acquire);
    if (chunk == nullptr) return nullptr;
    const RegionEntry& entry = (*chunk)[index & (chunk_size - 1)];
    return token != 0 && entry.token.load(std::memory_order_acquire) == token ? &entry : nullptr;
  }

 private:
  static constexpr unsigned index_bits = 20;
  static constexpr unsigned chunk_bits = 8;
  static constexpr std::uint64_t index_mask = (1U << index_bits) - 1;
  static constexpr std::size_t chunk_size = 1U << chunk_bits;
  static constexpr std::size_t chunk_count = 1U << (index_bits - chunk_bits);
  using Chunk = std::array<RegionEntry, chunk_size>;

  std::array<std::atomic<Chunk*>, chunk_count> chunks_{};
  std::vector<std::unique_ptr<Chunk>> owned_;
  std::vector<std::uint32_t> free_;
  std::uint64_t next_index_ = 0;
  std::mutex mutex_;
};

// True when [offset, offset + length) lies inside `size` bytes, without wrapping (MEM-4).
[[nodiscard]] constexpr bool inside(std::uint64_t offset, std::uint64_t length, std::uint64_t size) noexcept {
  return offset <= size && length <= size - offset;
}

}  // namespace weft::engine
