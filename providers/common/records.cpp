#include "records.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "program_memory.hpp"

namespace weft::engine {

Spill* SpillPool::take() noexcept {
  if (free_ == nullptr) {
    constexpr std::size_t block = 64;
    try {
      blocks_.push_back(std::make_unique<Spill[]>(block));
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
    for (std::size_t i = 0; i < block; ++i) give(&blocks_.back()[i]);
  }
  Spill* taken = free_;
  free_ = taken->next;
  return taken;
}

Piece Sink::next(std::uint64_t wanted) noexcept {
  if (discard_) return {};
  while (index_ < pieces_.count && offset_ == pieces_.first[index_].length) {
    ++index_;
    offset_ = 0;
  }
  if (index_ == pieces_.count) return {};
  const Piece& piece = pieces_.first[index_];
  return {piece.address + offset_, std::min(wanted, piece.length - offset_), piece.region};
}

void Sink::put(const std::byte* from, std::size_t length) noexcept {
  while (length != 0) {
    const Piece to = next(length);
    if (to.length == 0) return;  // discarded
    const ProgramMemoryAccess unjudged;
    std::memcpy(to.address, from, to.length);
    advance(to.length);
    from += to.length;
    length -= to.length;
  }
}

bool Sink::uses(std::uint64_t region) const noexcept {
  if (discard_) return false;
  for (std::uint32_t i = 0; i < pieces_.count; ++i) {
    if (pieces_.first[i].region == region) return true;
  }
  return false;
}

}  // namespace weft::engine
