#include "objects/endpoint_handle.hpp"

#include "log.hpp"

namespace weft::core {

namespace {

constexpr std::chrono::milliseconds graceful{1'000};
constexpr std::chrono::milliseconds patience{1'900};

}  // namespace

EndpointHandle::~EndpointHandle() {
  ContextCore& context = core_->context();
  if (context.is_inert()) {
    leak(std::move(core_));
    leak(std::move(context_));
    return;
  }
  try {
    std::unique_lock lock(context.mutex());
    core_->silence();
    core_->close(graceful);
    const auto start = Service::Clock::now();
    const bool ended = context.service().wait_until(lock, start + patience, [&] {
      context.handle_events();
      return core_->phase() == EndpointCore::Phase::ended;
    });
    if (!ended) {
      log(LogLevel::warning, "endpoint {} did not end within {} ms; it is released when it does", core_->id(),
          patience.count());
    }
  } catch (const std::exception& error) {
    log(LogLevel::error, "closing endpoint {} did not go as it should: {}", core_->id(), error.what());
  }
}

RemoteHandle::~RemoteHandle() {
  if (context_->core().is_inert()) {
    leak(std::move(context_));
    return;
  }
  const std::lock_guard guard(context_->core().mutex());
  if (const auto endpoint = endpoint_.lock()) endpoint->provider().release_key(token_);
}

}  // namespace weft::core
