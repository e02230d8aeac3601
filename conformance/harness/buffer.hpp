// Memory as the tests use it: between pages that nobody may touch, filled with a pattern that says where each
// byte belongs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace conformance {

// Byte `index` of the pattern of `seed`: every seed is another pattern, and no two places look alike.
[[nodiscard]] std::byte pattern_byte(std::uint64_t seed, std::uint64_t index) noexcept;
void fill_pattern(std::span<std::byte> bytes, std::uint64_t seed, std::uint64_t first_index = 0) noexcept;
// Empty when all bytes are as the pattern says; else where they begin to differ, in words.
[[nodiscard]] std::string pattern_difference(std::span<const std::byte> bytes, std::uint64_t seed,
                                             std::uint64_t first_index = 0);

// `size` bytes whose last one ends at a page that must not be touched; the bytes before the first, up to the
// page before, are watched too.
class GuardedBuffer {
 public:
  static constexpr std::byte poison_byte{0xDB};

  explicit GuardedBuffer(std::size_t size);
  GuardedBuffer(GuardedBuffer&& other) noexcept;
  GuardedBuffer& operator=(GuardedBuffer&& other) noexcept;
  // Checks the bytes before the first once more.
  ~GuardedBuffer();

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return {data_, size_}; }
  [[nodiscard]] std::span<std::byte> bytes(std::size_t offset, std::size_t length) const noexcept {
    return {data_ + offset, length};
  }
  template <class T>
  [[nodiscard]] T& at(std::size_t offset) const noexcept {
    return *reinterpret_cast<T*>(data_ + offset);
  }

  void fill(std::uint64_t seed) const noexcept { fill_pattern(bytes(), seed); }
  [[nodiscard]] std::string difference(std::uint64_t seed) const { return pattern_difference(bytes(), seed); }
  void poison() const noexcept;
  void poison(std::size_t offset, std::size_t length) const noexcept;
  // Empty when the piece still is as poison() left it.
  [[nodiscard]] std::string touched(std::size_t offset, std::size_t length) const;
  [[nodiscard]] std::string touched() const { return touched(0, size_); }
  // Empty when nothing was written before the first byte.
  [[nodiscard]] std::string underrun() const;
  // Whether the memory may be written; reading stays allowed. For finding who writes where nobody may.
  void protect(bool writable) const;

 private:
  void release() noexcept;

  std::byte* mapping_ = nullptr;
  std::size_t mapping_size_ = 0;
  std::byte* slack_ = nullptr;  // from the first usable page to data_
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace conformance
