#include "buffers.hpp"

#include <fmt/format.h>

#include <cstdlib>

namespace perf {

SlotBuffer::SlotBuffer(std::size_t size, std::size_t count) : size_(size), count_(count) {
  constexpr std::size_t page = 4096;
  const std::size_t rounded = (size * count + page - 1) / page * page;
  storage_.reset(static_cast<std::byte*>(std::aligned_alloc(page, rounded)));
  if (!storage_) {
    throw std::runtime_error(
        fmt::format("no memory for {} messages of {} bytes; choose smaller --sizes", count, size));
  }
  std::memset(storage_.get(), 1, rounded);
}

void SlotBuffer::Free::operator()(std::byte* memory) const noexcept { std::free(memory); }

void throw_wrong_stamp(std::uint64_t expected, std::uint64_t found) {
  throw std::runtime_error(
      fmt::format("message {} was expected, {} arrived: data was lost or reordered", expected, found));
}

}  // namespace perf
