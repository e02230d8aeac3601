// Memory that UCX made reachable for whoever has its key, and what such a key is made of.
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace weft::ucx {

// Registered with UCX. It gives all remote rights, whatever is asked for.
class NativeRegion {
 public:
  // Null when UCX cannot register it.
  [[nodiscard]] static std::unique_ptr<NativeRegion> make(ucp_context_h context, std::byte* address,
                                                          std::uint64_t length) noexcept;
  ~NativeRegion();
  NativeRegion(const NativeRegion&) = delete;
  NativeRegion& operator=(const NativeRegion&) = delete;

  [[nodiscard]] std::uint64_t address() const noexcept { return address_; }
  // As UCX packs it.
  [[nodiscard]] std::span<const std::byte> key() const noexcept { return key_; }

 private:
  NativeRegion(ucp_context_h context, ucp_mem_h memory, std::uint64_t address) noexcept
      : context_(context), memory_(memory), address_(address) {}

  ucp_context_h context_;
  ucp_mem_h memory_;
  std::uint64_t address_;
  std::vector<std::byte> key_;
};

// What a peer gets in order to write to a region: where to connect, where the memory lies, and UCX's key.
struct NativeKey {
  std::uint64_t address = 0;
  std::uint16_t port = 0;
  std::span<const std::byte> key;

  static constexpr std::size_t head = sizeof address + sizeof port;
  // The length; 0: it does not fit.
  [[nodiscard]] std::size_t encode(std::span<std::byte> bytes) const noexcept;
  // Nothing when it is malformed: UCX reads its own part without knowing its length. `by_device`: a key of a
  // device must be in it.
  [[nodiscard]] static std::optional<NativeKey> decode(std::span<const std::byte> bytes,
                                                       bool by_device) noexcept;
};

}  // namespace weft::ucx
