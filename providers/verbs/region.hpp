// Registered memory.
#pragma once

#include <array>
#include <cstddef>

#include "handles.hpp"
#include "key.hpp"
#include "weft/memory_region.hpp"
#include "weft/provider/queues.hpp"

namespace weft::verbs {

class Context;

class Region final : public provider::MemoryRegion {
 public:
  // Throws Error.
  Region(Context& context, const RegistrationRequest& request);

  [[nodiscard]] std::uint64_t token() const noexcept override { return token_; }
  [[nodiscard]] std::span<const std::byte> key() const noexcept override { return key_; }
  [[nodiscard]] AtomicScope atomic_scope() const noexcept override;
  Status deregister() noexcept override;
  void collect_users(std::vector<std::uint32_t>& endpoint_ids) override;
  void cancel_shared_receives() noexcept override;

 private:
  Context& context_;
  const Access access_;
  std::uint64_t token_ = 0;
  std::array<std::byte, Key::size> key_{};
  RegionHandle region_;
  bool device_holds_on_ = false;
};

}  // namespace weft::verbs
