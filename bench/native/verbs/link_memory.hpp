// The memory of one side of a link and how it is cut, whatever carries the bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>

#include "shape.hpp"
#include "work.hpp"

namespace weft::native {

class LinkMemory {
 public:
  // Sent from, written from, read into.
  [[nodiscard]] std::span<std::uint8_t> source() { return {memory_.get(), half_size_}; }
  // Received to, written to by the peer, read by the peer.
  [[nodiscard]] std::span<std::uint8_t> target() { return {memory_.get() + half_size_, half_size_}; }
  [[nodiscard]] std::uint64_t slot_count() const { return slot_count_; }
  [[nodiscard]] std::uint64_t slot_offset(std::uint64_t sequence) const {
    return sequence % slot_count_ * stride_;
  }

 protected:
  explicit LinkMemory(const Work& work)
      : size_(size_of(work)),
        stride_(stride_of(work)),
        slot_count_(slots_of(work)),
        half_size_(half_size_of(work)),
        memory_(static_cast<std::uint8_t*>(std::aligned_alloc(page_size, 2 * half_size_))) {
    if (!memory_) throw std::bad_alloc();
    std::fill_n(memory_.get(), 2 * half_size_, std::uint8_t{0});
  }

 private:
  struct Free {
    void operator()(std::uint8_t* memory) const noexcept { std::free(memory); }
  };

 protected:
  const std::uint64_t size_;  // of an operation
  const std::uint64_t stride_;
  const std::uint64_t slot_count_;
  const std::uint64_t half_size_;
  const std::unique_ptr<std::uint8_t, Free> memory_;
};

}  // namespace weft::native
