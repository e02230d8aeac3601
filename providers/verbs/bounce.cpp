#include "bounce.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include "fabric.hpp"

namespace weft::verbs {

bool Bounce::reserve(const Fabric& fabric, std::uint64_t length) noexcept {
  if (length <= size_) return true;
  constexpr std::uint64_t least = 4096;
  const std::uint64_t size = std::max(least, std::bit_ceil(length));
  std::unique_ptr<std::byte[]> bytes(new (std::nothrow) std::byte[size]);
  if (bytes == nullptr) return false;
  constexpr int access = IBV_ACCESS_LOCAL_WRITE;
  RegionHandle region(ibv_reg_mr(fabric.domain(), bytes.get(), size, access));
  if (region == nullptr) return false;
  region_ = std::move(region);  // the old registration goes before its memory
  bytes_ = std::move(bytes);
  size_ = size;
  return true;
}

void Bounce::gather(const ibv_sge* places, std::uint32_t count) noexcept {
  std::size_t filled = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    std::memcpy(bytes_.get() + filled, reinterpret_cast<const void*>(places[i].addr), places[i].length);
    filled += places[i].length;
  }
}

void Bounce::remember(const ibv_sge* places, std::uint32_t count) noexcept {
  std::copy_n(places, count, parts_.begin());
  count_ = count;
}

void Bounce::scatter(std::uint64_t length) const noexcept {
  std::uint64_t taken = 0;
  for (std::uint32_t i = 0; i < count_ && taken != length; ++i) {
    const std::uint64_t here = std::min<std::uint64_t>(parts_[i].length, length - taken);
    std::memcpy(reinterpret_cast<void*>(parts_[i].addr), bytes_.get() + taken, here);
    taken += here;
  }
}

}  // namespace weft::verbs
