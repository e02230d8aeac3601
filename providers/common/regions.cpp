#include "regions.hpp"

#include <atomic>
#include <string>

#include "weft/status.hpp"
#include "wire.hpp"

namespace weft::engine {

namespace {

constexpr std::uint32_t key_magic = 0x4b544657;  // "WFTK"
constexpr std::uint32_t key_version = 1;
constexpr auto all_access = static_cast<std::uint32_t>(Access::local_write | Access::remote_read |
                                                       Access::remote_write | Access::remote_atomic);

// Counts registrations of the whole process, so that a region's token is good in its own context only (MEM-2)
// and never comes back (SEC-2).
std::atomic<std::uint64_t> next_serial{1};

// FNV-1a, 64 bits. It finds accidents, not forgers.
std::uint64_t sum_of(std::span<const std::byte> bytes) noexcept {
  std::uint64_t sum = 0xcbf29ce484222325;
  for (const std::byte b : bytes) sum = (sum ^ static_cast<std::uint64_t>(b)) * 0x100000001b3;
  return sum;
}

}  // namespace

void Key::encode(std::span<std::byte, size> out) const noexcept {
  std::byte* at = out.data();
  at = wire::store(at, key_magic);
  at = wire::store(at, key_version);
  at = wire::store(at, region);
  at = wire::store(at, length);
  at = wire::store(at, static_cast<std::uint32_t>(access));
  at = wire::store(at, misalignment);
  at = wire::store(at, secret.low);
  at = wire::store(at, secret.high);
  wire::store(at, sum_of(out.first(size - sizeof(std::uint64_t))));
}

std::optional<Key> Key::decode(std::span<const std::byte> bytes) noexcept {
  if (bytes.size() != size) return std::nullopt;
  const std::byte* at = bytes.data();
  if (wire::load<std::uint32_t>(at) != key_magic || wire::load<std::uint32_t>(at + 4) != key_version) {
    return std::nullopt;
  }
  if (wire::load<std::uint64_t>(at + 48) != sum_of(bytes.first(48))) return std::nullopt;
  Key key;
  key.region = wire::load<std::uint64_t>(at + 8);
  key.length = wire::load<std::uint64_t>(at + 16);
  const auto access = wire::load<std::uint32_t>(at + 24);
  if (key.region == 0 || key.length == 0 || (access & ~all_access) != 0) return std::nullopt;
  key.access = static_cast<Access>(access);
  key.misalignment = wire::load<std::uint32_t>(at + 28);
  if (key.misalignment > 7) return std::nullopt;
  key.secret = {wire::load<std::uint64_t>(at + 32), wire::load<std::uint64_t>(at + 40)};
  return key;
}

const RegionEntry& RegionTable::add(std::byte* address, std::uint64_t length, Access access, Secret secret,
                                    std::uint64_t native) {
  const std::lock_guard lock(mutex_);
  std::uint64_t index = 0;
  if (!free_.empty()) {
    index = free_.back();
    free_.pop_back();
  } else {
    if (next_index_ > index_mask) {
      throw Error(Status::resource_limit,
                  "cannot register memory: " + std::to_string(next_index_) +
                      " regions are registered in this context, the largest number; deregister some");
    }
    index = next_index_++;
    auto& slot = chunks_[index >> chunk_bits];
    if (slot.load(std::memory_order_relaxed) == nullptr) {
      owned_.push_back(std::make_unique<Chunk>());
      slot.store(owned_.back().get(), std::memory_order_release);
    }
  }
  RegionEntry& entry =
      (*chunks_[index >> chunk_bits].load(std::memory_order_relaxed))[index & (chunk_size - 1)];
  entry.address = address;
  entry.length = length;
  entry.access = access;
  entry.secret = secret;
  entry.native = native;
  entry.token.store((next_serial.fetch_add(1, std::memory_order_relaxed) << index_bits) | index,
                    std::memory_order_release);
  return entry;
}

void RegionTable::retire(std::uint64_t token) noexcept {
  const std::lock_guard lock(mutex_);
  const std::uint64_t index = token & index_mask;
  RegionEntry& entry =
      (*chunks_[index >> chunk_bits].load(std::memory_order_relaxed))[index & (chunk_size - 1)];
  if (entry.token.load(std::memory_order_relaxed) == token) entry.token.store(0, std::memory_order_release);
}

void RegionTable::free(std::uint64_t token) noexcept {
  const std::lock_guard lock(mutex_);
  free_.push_back(static_cast<std::uint32_t>(token & index_mask));
}

}  // namespace weft::engine
