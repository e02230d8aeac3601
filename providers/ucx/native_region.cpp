#include "native_region.hpp"

#include <bit>
#include <cstring>
#include <new>

#include "handles.hpp"

namespace weft::ucx {

std::unique_ptr<NativeRegion> NativeRegion::make(ucp_context_h context, std::byte* address,
                                                 std::uint64_t length) noexcept {
  ucp_mem_map_params_t parameters{};
  parameters.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
  parameters.address = address;
  parameters.length = length;
  ucp_mem_h memory = nullptr;
  if (ucp_mem_map(context, &parameters, &memory) != UCS_OK) return nullptr;
  std::unique_ptr<NativeRegion> region(
      new (std::nothrow) NativeRegion(context, memory, reinterpret_cast<std::uint64_t>(address)));
  if (region == nullptr) {
    ucp_mem_unmap(context, memory);
    return nullptr;
  }
  void* packed = nullptr;
  std::size_t size = 0;
  if (ucp_rkey_pack(context, memory, &packed, &size) != UCS_OK) return nullptr;
  try {
    const auto* const bytes = static_cast<const std::byte*>(packed);
    region->key_.assign(bytes, bytes + size);
  } catch (const std::bad_alloc&) {
    region.reset();
  }
  ucp_rkey_buffer_release(packed);
  return region;
}

NativeRegion::~NativeRegion() { ucp_mem_unmap(context_, memory_); }

std::size_t NativeKey::encode(std::span<std::byte> bytes) const noexcept {
  const std::size_t length = head + key.size();
  if (length > bytes.size()) return 0;
  std::memcpy(bytes.data(), &address, sizeof address);
  std::memcpy(bytes.data() + sizeof address, &port, sizeof port);
  std::memcpy(bytes.data() + head, key.data(), key.size());
  return length;
}

// UCX 1.13: a map of memory domains, the memory's type, and for each domain the length of its part and that.
// Remote memory of another type than the host's is none of weft's.
std::optional<NativeKey> NativeKey::decode(std::span<const std::byte> bytes, bool by_device) noexcept {
  NativeKey key;
  std::uint64_t domains = 0;
  constexpr std::size_t packed_head = sizeof domains + 1;
  if (bytes.size() < head + packed_head) return std::nullopt;
  std::memcpy(&key.address, bytes.data(), sizeof key.address);
  std::memcpy(&key.port, bytes.data() + sizeof key.address, sizeof key.port);
  key.key = bytes.subspan(head);
  std::memcpy(&domains, key.key.data(), sizeof domains);
  if (key.port == 0 || (by_device && domains == 0) || static_cast<std::uint8_t>(key.key[sizeof domains]) != 0)
    return std::nullopt;
  std::size_t at = packed_head;
  for (int part = std::popcount(domains); part != 0; --part) {
    if (at == key.key.size()) return std::nullopt;
    const auto length = static_cast<std::size_t>(key.key[at]);
    const std::size_t least = by_device ? 8 : 0;  // so long are those of devices
    if (length < least || length > key.key.size() - at - 1) return std::nullopt;
    at += 1 + length;
  }
  if (at != key.key.size()) return std::nullopt;
  return key;
}

}  // namespace weft::ucx
