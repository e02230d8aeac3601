#include "ledger.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace weft::check {
namespace {

// Of long pieces the two ends and a byte here and there.
constexpr std::uint64_t looked_at_whole = 1 << 20;
constexpr std::uint64_t end_length = 1 << 16;
constexpr std::uint64_t most_samples = 1 << 14;

std::uint64_t mixed(std::uint64_t sum, const std::byte* bytes, std::uint64_t length) noexcept {
  constexpr std::uint64_t prime = 0x100000001b3;
  for (; length >= sizeof(std::uint64_t); bytes += sizeof(std::uint64_t), length -= sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes, sizeof word);
    sum = (sum ^ word) * prime;
    sum ^= sum >> 29;
  }
  for (; length != 0; ++bytes, --length) sum = (sum ^ static_cast<std::uint64_t>(*bytes)) * prime;
  return sum;
}

}  // namespace

std::uint64_t checksum_of(const std::vector<Piece>& pieces) noexcept {
  std::uint64_t sum = 0xcbf29ce484222325;
  for (const Piece& piece : pieces) {
    if (piece.length <= looked_at_whole) {
      sum = mixed(sum, piece.address, piece.length);
      continue;
    }
    sum = mixed(sum, piece.address, end_length);
    const std::uint64_t stride = piece.length / most_samples | 1;
    for (std::uint64_t at = end_length; at < piece.length; at += stride)
      sum = mixed(sum, piece.address + at, 1);
    sum = mixed(sum, piece.address + piece.length - end_length, end_length);
  }
  return sum;
}

std::string Open::text() const {
  return fmt::format("{} context={:#x} of {}", to_string(operation), context, owner);
}

const Open* Ledger::conflict(const Open& candidate) const {
  for (const Piece& piece : candidate.pieces) {
    if (piece.length == 0) continue;
    const auto begin = reinterpret_cast<std::uintptr_t>(piece.address);
    const std::uintptr_t end = begin + piece.length;
    for (auto at = spans_.lower_bound(end); at != spans_.begin();) {
      --at;
      if (at->first + longest_ <= begin) break;  // nothing before reaches this far
      const bool meets = at->first + at->second.length > begin;
      if (meets && (candidate.written || at->second.open->written)) return at->second.open;
    }
  }
  return nullptr;
}

void Ledger::add(const Open& open) {
  for (const Piece& piece : open.pieces) {
    if (piece.length == 0) continue;
    spans_.emplace(reinterpret_cast<std::uintptr_t>(piece.address), Span{piece.length, &open});
    longest_ = std::max(longest_, piece.length);
  }
}

void Ledger::remove(const Open& open) {
  for (const Piece& piece : open.pieces) {
    const auto [first, last] = spans_.equal_range(reinterpret_cast<std::uintptr_t>(piece.address));
    for (auto at = first; at != last; ++at) {
      if (at->second.open != &open) continue;
      spans_.erase(at);
      break;
    }
  }
  if (spans_.empty()) longest_ = 0;
}

}  // namespace weft::check
