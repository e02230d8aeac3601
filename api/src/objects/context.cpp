#include "weft/context.hpp"

#include "address.hpp"
#include "bootstrap/dial_handshake.hpp"
#include "log.hpp"
#include "objects/endpoint_handle.hpp"
#include "objects/listener_handle.hpp"
#include "objects/opener.hpp"
#include "objects/queue_core.hpp"
#include "objects/receive_queue_core.hpp"
#include "objects/region_handle.hpp"
#include "open_provider.hpp"

namespace weft {

namespace {

constexpr std::uint32_t max_capacity = 1U << 20;
constexpr std::uint32_t max_depth = 1U << 20;

core::ContextCore& checked(const std::shared_ptr<core::ContextState>& state, const char* what) {
  if (state == nullptr) {
    throw Error(Status::invalid_argument,
                std::string("cannot ") + what + ": this Context is not open; call Context::open first");
  }
  state->core().check_usable(what);
  return state->core();
}

void check_range(const char* name, std::uint32_t value, std::uint32_t highest) {
  if (value >= 1 && value <= highest) return;
  throw Error(Status::invalid_argument, std::string(name) + " is " + std::to_string(value) +
                                            "; it must be between 1 and " + std::to_string(highest));
}

}  // namespace

Context Context::open(const ContextOptions& options) {
  auto bell = std::make_shared<core::ContextBell>();
  auto opened = core::open_provider(options, *bell);
  return core::Opener::make(core::open_context_with(std::move(bell), std::move(opened), options));
}

CompletionQueue Context::create_completion_queue(const CompletionQueueOptions& options) {
  core::ContextCore& core = checked(state_, "create a completion queue");
  check_range("CompletionQueueOptions::capacity", options.capacity, max_capacity);
  auto queue = std::make_shared<core::QueueCore>(core, options.capacity);
  {
    const std::lock_guard guard(core.mutex());
    core.add_queue(queue);
  }
  return CompletionQueue(std::make_shared<core::QueueState>(state_, std::move(queue)));
}

ReceiveQueue Context::create_receive_queue(const ReceiveQueueOptions& options) {
  core::ContextCore& core = checked(state_, "create a receive queue");
  check_range("ReceiveQueueOptions::depth", options.depth, max_depth);
  const auto& queue = core::Opener::state(options.queue);
  if (queue == nullptr) throw Error(Status::invalid_argument, "ReceiveQueueOptions::queue is not set");
  if (&queue->core().context() != &core) {
    throw Error(Status::invalid_argument, "ReceiveQueueOptions::queue belongs to another context");
  }
  auto receives =
      std::make_shared<core::ReceiveQueueCore>(core, queue->shared(), options.depth, options.user_value);
  return ReceiveQueue(std::make_shared<core::ReceiveQueueState>(state_, std::move(receives)));
}

MemoryRegion Context::register_memory(const RegistrationRequest& request) {
  core::ContextCore& core = checked(state_, "register memory");
  if (request.length == 0) {
    throw Error(Status::invalid_argument,
                "cannot register memory of length 0; zero-length operations need none");
  }
  if (request.kind == RegistrationRequest::Kind::host &&
      (request.address == nullptr ||
       request.length > UINTPTR_MAX - reinterpret_cast<std::uintptr_t>(request.address))) {
    throw Error(Status::invalid_argument, "cannot register " + std::to_string(request.length) +
                                              " bytes: the address is null, or the range wraps around");
  }
  auto region = core.provider().register_memory(request);
  const std::uint64_t token = region->token();
  auto handle = std::make_shared<core::RegionHandle>(state_, std::move(region), request.access);
  return {std::move(handle), token, request.length};
}

MemoryRegion Context::register_memory(void* address, std::size_t length, Access access) {
  RegistrationRequest request;
  request.address = address;
  request.length = length;
  request.access = access;
  return register_memory(request);
}

MemoryRegion Context::register_memory(const void* address, std::size_t length, Access access) {
  constexpr Access writing = Access::local_write | Access::remote_write | Access::remote_atomic;
  if ((access & writing) != Access::none) {
    throw Error(Status::invalid_argument,
                "read-only memory cannot be registered for access that writes to it");
  }
  return register_memory(const_cast<void*>(address), length, access);  // nobody writes: checked above
}

Listener Context::listen(std::string_view address, const ListenOptions& options) {
  core::ContextCore& core = checked(state_, "listen");
  auto listener = core::ListenerCore::make(core, address, options);
  {
    const std::lock_guard guard(core.mutex());
    core.add_listener(listener);
    listener->start();
  }
  return Listener(std::make_shared<core::ListenerHandle>(state_, std::move(listener)));
}

Endpoint Context::connect(std::string_view address, const EndpointOptions& options) {
  core::ContextCore& core = checked(state_, "connect");
  core::HostPort target = core::parse_host_port(address);
  if (target.host.empty()) {
    throw Error(Status::invalid_argument,
                "cannot connect to \"" + std::string(address) + "\": it names no host");
  }
  const auto endpoint = core::EndpointCore::make(core, options);
  auto handle = std::make_shared<core::EndpointHandle>(state_, endpoint);
  const std::lock_guard guard(core.mutex());
  const auto handshake = std::make_shared<core::DialHandshake>(
      endpoint, std::move(target),
      std::vector<std::byte>(options.private_data.begin(), options.private_data.end()));
  endpoint->begin(handshake);
  handshake->start(options.timeout);
  return core::Opener::make(std::move(handle));
}

const Attributes& Context::attributes() const {
  if (state_ == nullptr) throw Error(Status::invalid_argument, "this Context is not open");
  return state_->core().attributes();
}

std::vector<Counter> Context::counters() const {
  if (state_ == nullptr) throw Error(Status::invalid_argument, "this Context is not open");
  if (state_->core().is_inert()) return {};
  return state_->core().provider().counters();
}

void Context::close() {
  if (state_ != nullptr) state_->core().shut_down();
}

}  // namespace weft
