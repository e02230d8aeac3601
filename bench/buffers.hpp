// The memory a workload walks: page-aligned, written once before the first slice so that no page fault is
// measured.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

namespace perf {

/// `count` slots of `size` bytes, one after the other.
class SlotBuffer {
 public:
  SlotBuffer(std::size_t size, std::size_t count);

  [[nodiscard]] std::size_t slot_size() const { return size_; }
  [[nodiscard]] std::size_t slot_count() const { return count_; }
  [[nodiscard]] std::size_t offset(std::uint64_t number) const { return (number % count_) * size_; }
  [[nodiscard]] std::byte* slot(std::uint64_t number) { return storage_.get() + offset(number); }
  [[nodiscard]] std::span<std::byte> bytes() { return {storage_.get(), size_ * count_}; }

 private:
  struct Free {
    void operator()(std::byte* memory) const noexcept;
  };

  std::size_t size_;
  std::size_t count_;
  std::unique_ptr<std::byte, Free> storage_;
};

/// Writes the number of a message into its first bytes, as a program would write a message before sending it.
inline void stamp(std::byte* message, std::uint64_t number) { std::memcpy(message, &number, sizeof number); }

/// What a slot holds before the bytes it waits for arrive.
inline constexpr std::uint64_t not_a_stamp = ~std::uint64_t{0};

[[noreturn]] void throw_wrong_stamp(std::uint64_t expected, std::uint64_t found);

/// Reads the number back, as a program would read a message, and insists on it: no contender may lose or
/// reorder.
inline void check_stamp(const std::byte* message, std::uint64_t expected) {
  std::uint64_t found = 0;
  std::memcpy(&found, message, sizeof found);
  if (found != expected) [[unlikely]]
    throw_wrong_stamp(expected, found);
}

}  // namespace perf
