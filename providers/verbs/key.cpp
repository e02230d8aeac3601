#include "key.hpp"

#include "common/wire.hpp"

namespace weft::verbs {

namespace wire = engine::wire;

namespace {

constexpr std::uint32_t key_magic = 0x4b565457;  // "WTVK"
constexpr std::uint32_t key_version = 1;
constexpr auto all_access = static_cast<std::uint32_t>(Access::local_write | Access::remote_read |
                                                       Access::remote_write | Access::remote_atomic);
constexpr std::size_t summed = Key::size - sizeof(std::uint64_t);

// FNV-1a, 64 bits. It finds accidents, not forgers.
std::uint64_t sum_of(std::span<const std::byte> bytes) noexcept {
  std::uint64_t sum = 0xcbf29ce484222325;
  for (const std::byte b : bytes) sum = (sum ^ static_cast<std::uint64_t>(b)) * 0x100000001b3;
  return sum;
}

}  // namespace

void Key::encode(std::span<std::byte, size> out) const noexcept {
  std::byte* at = wire::store(out.data(), key_magic);
  at = wire::store(at, key_version);
  at = wire::store(at, address);
  at = wire::store(at, length);
  at = wire::store(at, native);
  at = wire::store(at, static_cast<std::uint32_t>(access));
  at = wire::store(at, std::uint64_t{0});
  wire::store(at, sum_of(out.first(summed)));
}

std::optional<Key> Key::decode(std::span<const std::byte> bytes) noexcept {
  if (bytes.size() != size) return std::nullopt;
  const std::byte* at = bytes.data();
  if (wire::load<std::uint32_t>(at) != key_magic || wire::load<std::uint32_t>(at + 4) != key_version)
    return std::nullopt;
  if (wire::load<std::uint64_t>(at + summed) != sum_of(bytes.first(summed))) return std::nullopt;
  Key key;
  key.address = wire::load<std::uint64_t>(at + 8);
  key.length = wire::load<std::uint64_t>(at + 16);
  key.native = wire::load<std::uint32_t>(at + 24);
  const auto access = wire::load<std::uint32_t>(at + 28);
  if (key.length == 0 || key.length > UINT64_MAX - key.address || (access & ~all_access) != 0)
    return std::nullopt;
  key.access = static_cast<Access>(access);
  return key;
}

}  // namespace weft::verbs
