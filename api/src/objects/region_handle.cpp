#include "objects/region_handle.hpp"

#include <vector>

#include "log.hpp"
#include "objects/endpoint_core.hpp"

namespace weft::core {

namespace {

constexpr std::chrono::milliseconds patience{1'900};
constexpr std::chrono::milliseconds time_to_run_out{1'000};  // MEM-5
constexpr std::chrono::milliseconds look_again{1};

}  // namespace

Status RegionHandle::deregister() noexcept {
  const std::lock_guard guard(mutex_);
  try {
    return deregister_locked(false);
  } catch (const std::exception& error) {
    log(LogLevel::error, "deregistering memory did not go as it should: {}", error.what());
    return Status::busy;
  }
}

void RegionHandle::end_users() {
  ContextCore& core = context();
  const std::lock_guard guard(core.mutex());
  region_->cancel_shared_receives();
  std::vector<std::uint32_t> users;
  region_->collect_users(users);
  for (const std::uint32_t user : users) {
    if (const auto endpoint = core.find_endpoint(user)) {
      endpoint->abort("the memory its operations use was deregistered");
    }
  }
  core.handle_events();
}

Status RegionHandle::deregister_locked(bool by_force) {
  if (!registered_.load()) return Status::ok;
  ContextCore& core = context();
  const auto start = Service::Clock::now();
  for (;;) {
    core.assist();
    const Status status = region_->deregister();
    if (status == Status::ok) {
      registered_.store(false);
      return status;
    }
    if (status != Status::again && !by_force) return Status::busy;
    // Local use is ended when the last handle goes; remote use runs out by itself or is ended after a while.
    const auto passed = Service::Clock::now() - start;
    if (passed > patience) return Status::busy;
    if (by_force || passed > time_to_run_out) end_users();
    std::unique_lock lock(core.mutex());
    (void)core.service().wait_until(lock, Service::Clock::now() + look_again, [] { return false; });
  }
}

RegionHandle::~RegionHandle() {
  if (context().is_inert()) {
    leak(std::move(region_));
    leak(std::move(context_));
    return;
  }
  try {
    const std::lock_guard guard(mutex_);
    if (deregister_locked(true) == Status::ok) return;
    log(LogLevel::error, "memory is still in use {} ms after its last handle went; it stays registered",
        patience.count());
  } catch (const std::exception& error) {
    log(LogLevel::error, "deregistering memory did not go as it should: {}", error.what());
  }
  leak(std::move(region_));  // the provider may still touch the memory: its object cannot be destroyed
}

}  // namespace weft::core
