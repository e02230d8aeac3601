// What a decorator remembers by number: the regions a program registered, its endpoints, the keys it
// imported.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <unordered_map>
#include <utility>

#include "weft/flags.hpp"
#include "weft/work_request.hpp"

namespace weft::decorator {

template <class Number, class Value>
class Book {
 public:
  void add(Number number, Value value) {
    const std::unique_lock lock(mutex_);
    values_.insert_or_assign(number, std::move(value));
  }
  void remove(Number number) noexcept {
    const std::unique_lock lock(mutex_);
    values_.erase(number);
  }
  [[nodiscard]] std::optional<Value> find(Number number) const {
    const std::shared_lock lock(mutex_);
    const auto found = values_.find(number);
    if (found == values_.end()) return std::nullopt;
    return found->second;
  }

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<Number, Value> values_;
};

struct RegionFacts {
  std::byte* address = nullptr;
  std::uint64_t length = 0;
  Access access = Access::none;
};
using RegionBook = Book<std::uint64_t, RegionFacts>;

struct KeyFacts {
  std::uint64_t length = 0;
  Access access = Access::none;
};
using KeyBook = Book<std::uint64_t, KeyFacts>;

[[nodiscard]] constexpr bool lies_inside(std::uint64_t offset, std::uint64_t length,
                                         std::uint64_t whole) noexcept {
  return offset <= whole && length <= whole - offset;
}

// All segments lie in regions of the book that grant the access.
[[nodiscard]] inline bool are_good(const RegionBook& regions, std::span<const Segment> segments,
                                   Access access) {
  for (const Segment& segment : segments) {
    const auto region = regions.find(segment.region);
    if (!region || !has(region->access, access)) return false;
    if (!lies_inside(segment.offset, segment.length, region->length)) return false;
  }
  return true;
}

}  // namespace weft::decorator
