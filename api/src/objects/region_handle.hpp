// What the program's memory region handles share. The last one gone ends the endpoints that still use the
// region, then deregisters (ERR-5).
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>

#include "objects/context_core.hpp"
#include "weft/memory_region.hpp"
#include "weft/provider/queues.hpp"

namespace weft::core {

class RegionHandle {
 public:
  RegionHandle(std::shared_ptr<ContextState> context, std::unique_ptr<provider::MemoryRegion> region,
               Access access) noexcept
      : context_(std::move(context)), region_(std::move(region)), access_(access) {}
  ~RegionHandle();
  RegionHandle(const RegionHandle&) = delete;
  RegionHandle& operator=(const RegionHandle&) = delete;

  [[nodiscard]] Access access() const noexcept { return access_; }
  [[nodiscard]] bool is_registered() const noexcept { return registered_.load(); }
  // What the provider tells stays readable for the life of the handle.
  [[nodiscard]] provider::MemoryRegion& provider() const noexcept { return *region_; }
  [[nodiscard]] ContextCore& context() const noexcept { return context_->core(); }
  [[nodiscard]] Status deregister() noexcept;

 private:
  // By force: whoever still uses the memory is ended.
  [[nodiscard]] Status deregister_locked(bool by_force);
  void end_users();

  std::shared_ptr<ContextState> context_;  // destroyed last
  std::unique_ptr<provider::MemoryRegion> region_;
  const Access access_;
  std::mutex mutex_;  // one deregister at a time
  std::atomic<bool> registered_{true};
};

}  // namespace weft::core
