// Registered memory, and memory of the peer that was imported by its key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "weft/attributes.hpp"
#include "weft/export.hpp"
#include "weft/flags.hpp"
#include "weft/status.hpp"
#include "weft/work_request.hpp"

namespace weft {

namespace core {
class RegionHandle;
class RemoteHandle;
}  // namespace core

// What is to be registered. Host memory is a span; device memory comes as a dmabuf descriptor with an offset.
struct RegistrationRequest {
  enum class Kind : std::uint8_t { host, dmabuf };
  Kind kind = Kind::host;
  void* address = nullptr;   // host: first byte. dmabuf: the device address, if it has one
  std::uint64_t length = 0;  // bytes; 0 is invalid (MEM-1)
  Access access = Access::none;
  int dmabuf_descriptor = -1;       // stays the caller's
  std::uint64_t dmabuf_offset = 0;  // bytes into the dmabuf
};

// A handle; copies name the same registration. Destroying the last copy ends the endpoints that still use the
// region, then deregisters (ERR-5). Thread rules: as the context's thread mode.
class WEFT_API MemoryRegion {
 public:
  MemoryRegion() noexcept = default;

  // A piece of the region, to post. Not checked here: a piece outside the region is `invalid_argument` at
  // post (MEM-2). noexcept, costs nothing.
  [[nodiscard]] Segment slice(std::uint64_t offset, std::uint64_t length) const noexcept {
    return {token_, offset, length};
  }
  [[nodiscard]] Segment whole() const noexcept { return {token_, 0, length_}; }
  // As slice; throws Error(invalid_argument) when the piece does not lie inside the region.
  [[nodiscard]] Segment checked_slice(std::uint64_t offset, std::uint64_t length) const;

  // The region's key: opaque bytes to be carried to the peer by the program, at most Attributes::max_key_size
  // long (MEM-3). It carries range and rights and cannot be guessed (SEC-2). Valid as long as this handle.
  [[nodiscard]] std::span<const std::byte> key() const;

  [[nodiscard]] std::uint64_t length() const noexcept { return length_; }
  [[nodiscard]] Access access() const;
  [[nodiscard]] AtomicScope atomic_scope() const;  // OPS-5

  // Ends the registration. `busy` while a local operation uses the region: nothing changed, try again
  // (MEM-5). `ok`: no transfer, local or remote, touches the memory any more. A second call answers ok.
  Status deregister();

  // False for a default-made handle and after deregister() answered ok.
  [[nodiscard]] explicit operator bool() const noexcept;

 private:
  friend class Context;
  MemoryRegion(std::shared_ptr<core::RegionHandle> handle, std::uint64_t token, std::uint64_t length) noexcept
      : handle_(std::move(handle)), token_(token), length_(length) {}

  std::shared_ptr<core::RegionHandle> handle_;
  std::uint64_t token_ = 0;
  std::uint64_t length_ = 0;
};

// The peer's region as seen through one endpoint (Endpoint::import_memory). A handle; it keeps no endpoint
// alive. Using it after its endpoint ended answers not_connected; through another endpoint, invalid_argument.
class WEFT_API RemoteMemory {
 public:
  RemoteMemory() noexcept = default;

  // A place in the region, `offset` bytes from its start. Range and rights are checked at post (MEM-4).
  [[nodiscard]] RemoteSegment at(std::uint64_t offset) const noexcept { return {token_, offset}; }

  [[nodiscard]] std::uint64_t length() const noexcept { return length_; }
  [[nodiscard]] Access access() const noexcept { return access_; }

 private:
  friend class Endpoint;
  RemoteMemory(std::shared_ptr<core::RemoteHandle> handle, std::uint64_t token, std::uint64_t length,
               Access access) noexcept
      : handle_(std::move(handle)), token_(token), length_(length), access_(access) {}

  std::shared_ptr<core::RemoteHandle> handle_;
  std::uint64_t token_ = 0;
  std::uint64_t length_ = 0;
  Access access_ = Access::none;
};

}  // namespace weft
