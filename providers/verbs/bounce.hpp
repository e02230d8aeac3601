// A detour for operations of more segments than the device takes in one request: one piece of registered
// memory that is gathered into, or scattered from.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "chain.hpp"
#include "handles.hpp"

namespace weft::verbs {

class Fabric;

class Bounce {
 public:
  // Room for `length` bytes; false when it cannot be had now. Grows, and then stays.
  [[nodiscard]] bool reserve(const Fabric& fabric, std::uint64_t length) noexcept;
  // Copies the places' bytes in.
  void gather(const ibv_sge* places, std::uint32_t count) noexcept;
  // Where the bytes go that arrive here.
  void remember(const ibv_sge* places, std::uint32_t count) noexcept;
  void scatter(std::uint64_t length) const noexcept;

  [[nodiscard]] ibv_sge place(std::uint64_t length) const noexcept {
    return {reinterpret_cast<std::uint64_t>(bytes_.get()), static_cast<std::uint32_t>(length), region_->lkey};
  }
  // In a forked child the registration is the parent's.
  void leave_to_parent() noexcept { static_cast<void>(region_.release()); }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  RegionHandle region_;
  std::uint64_t size_ = 0;
  std::array<ibv_sge, segments_per_request> parts_{};
  std::uint32_t count_ = 0;
};

}  // namespace weft::verbs
