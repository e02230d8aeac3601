#include "weft/endpoint.hpp"

#include "objects/endpoint_handle.hpp"
#include "objects/queue_core.hpp"

namespace weft {

namespace {

core::EndpointHandle& checked(const std::shared_ptr<core::EndpointHandle>& handle, const char* what) {
  if (handle == nullptr) {
    throw Error(Status::invalid_argument,
                std::string("cannot ") + what + ": this Endpoint names no endpoint");
  }
  return *handle;
}

}  // namespace

Endpoint::Endpoint(std::shared_ptr<core::EndpointHandle> handle) noexcept
    : path_(handle != nullptr ? &handle->provider() : nullptr), handle_(std::move(handle)) {}

RemoteMemory Endpoint::import_memory(std::span<const std::byte> key) {
  core::EndpointHandle& handle = checked(handle_, "import a key");
  handle.context().check_usable("import a key");
  const std::lock_guard guard(handle.context().mutex());
  using Phase = core::EndpointCore::Phase;
  const Phase phase = handle.core().phase();
  if (phase != Phase::up && phase != Phase::draining) {
    throw Error(Status::not_connected, phase == Phase::connecting
                                           ? "cannot import a key: the endpoint is not up yet"
                                           : "cannot import a key: the endpoint has ended");
  }
  const auto imported = handle.provider().import_key(key);
  std::shared_ptr<core::RemoteHandle> remote;
  try {
    remote = std::make_shared<core::RemoteHandle>(handle.context_state(), handle.shared(), imported.token);
  } catch (...) {
    handle.provider().release_key(imported.token);
    throw;
  }
  return {std::move(remote), imported.token, imported.length, imported.access};
}

Endpoint Endpoint::wait_up(std::chrono::nanoseconds timeout) {
  core::EndpointHandle& handle = checked(handle_, "wait for the connection");
  core::ContextCore& context = handle.context();
  if (context.is_inert()) context.check_usable("wait for the connection");
  core::EndpointCore& endpoint = handle.core();
  const auto deadline = timeout < std::chrono::nanoseconds::zero()
                            ? core::Service::Time::max()
                            : core::after(core::Service::Clock::now(), timeout);
  std::unique_lock lock(context.mutex());
  const bool known = context.service().wait_until(
      lock, deadline, [&endpoint] { return endpoint.connect_status() != Status::again; });
  if (!known) {
    throw Error(Status::timed_out, "the connection to " + endpoint.peer_name() +
                                       " was not up when wait_up's timeout passed; the attempt goes on");
  }
  if (endpoint.connect_status() == Status::ok) {
    (void)handle.provider().withdraw_connect_report();  // false: the program has taken it already
    return *this;
  }
  (void)endpoint.receive_queue().take_back(&endpoint);
  throw Error(endpoint.connect_status(), endpoint.describe_end());
}

void Endpoint::close(std::chrono::nanoseconds deadline) {
  core::EndpointHandle& handle = checked(handle_, "close");
  if (handle.context().is_inert()) return;
  const std::lock_guard guard(handle.context().mutex());
  handle.core().close(deadline);
  handle.context().handle_events();
}

void Endpoint::abort() {
  core::EndpointHandle& handle = checked(handle_, "abort");
  if (handle.context().is_inert()) return;
  const std::lock_guard guard(handle.context().mutex());
  handle.core().abort("aborted by this side");
  handle.context().handle_events();
}

EndpointState Endpoint::state() const {
  core::EndpointHandle& handle = checked(handle_, "tell the state");
  if (handle.context().is_inert()) return EndpointState::ended;
  handle.context().assist();
  const std::lock_guard guard(handle.context().mutex());
  switch (handle.core().phase()) {
    case core::EndpointCore::Phase::connecting:
      return EndpointState::connecting;
    case core::EndpointCore::Phase::up:
      return EndpointState::up;
    case core::EndpointCore::Phase::draining:
    case core::EndpointCore::Phase::ending:
      return EndpointState::closing;
    case core::EndpointCore::Phase::ended:
      break;
  }
  return EndpointState::ended;
}

Status Endpoint::cause() const {
  core::EndpointHandle& handle = checked(handle_, "tell the cause");
  if (handle.context().is_inert()) return Status::not_connected;
  handle.context().assist();
  const std::lock_guard guard(handle.context().mutex());
  return handle.core().cause();
}

std::string Endpoint::describe_end() const {
  core::EndpointHandle& handle = checked(handle_, "describe the end");
  if (handle.context().is_inert())
    return "this is a forked child, where the parent's weft objects do nothing";
  const std::lock_guard guard(handle.context().mutex());
  return handle.core().describe_end();
}

Limits Endpoint::limits() const {
  core::EndpointHandle& handle = checked(handle_, "tell the limits");
  if (handle.context().is_inert()) return {};
  const std::lock_guard guard(handle.context().mutex());
  return handle.provider().limits();
}

std::string Endpoint::local_address() const {
  core::EndpointHandle& handle = checked(handle_, "tell the address");
  if (handle.context().is_inert()) return {};
  const std::lock_guard guard(handle.context().mutex());
  return handle.core().local_address();
}

std::string Endpoint::peer_address() const {
  core::EndpointHandle& handle = checked(handle_, "tell the peer's address");
  if (handle.context().is_inert()) return {};
  const std::lock_guard guard(handle.context().mutex());
  return handle.core().peer_address();
}

std::span<const std::byte> Endpoint::peer_private_data() const {
  core::EndpointHandle& handle = checked(handle_, "tell the peer's private data");
  if (handle.context().is_inert()) return {};
  const std::lock_guard guard(handle.context().mutex());
  return handle.core().peer_private_data();  // set once, before the outcome is reported
}

std::uint32_t Endpoint::id() const noexcept { return handle_ == nullptr ? 0 : handle_->core().id(); }

std::uint64_t Endpoint::user_value() const noexcept {
  return handle_ == nullptr ? 0 : handle_->core().user_value();
}

}  // namespace weft
