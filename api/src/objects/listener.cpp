#include "weft/listener.hpp"

#include "objects/endpoint_handle.hpp"
#include "objects/listener_handle.hpp"
#include "objects/opener.hpp"

namespace weft {

namespace {

template <typename Handle>
Handle& checked(const std::shared_ptr<Handle>& handle, const char* what) {
  if (handle == nullptr)
    throw Error(Status::invalid_argument, std::string("cannot ") + what + ": the handle is empty");
  return *handle;
}

}  // namespace

std::string ConnectionRequest::peer_address() const {
  return checked(handle_, "tell the peer's address").arrival().peer_address().to_string();
}

std::span<const std::byte> ConnectionRequest::private_data() const {
  return checked(handle_, "tell the private data").arrival().private_data();
}

Endpoint ConnectionRequest::prepare(const EndpointOptions& options) {
  return core::Opener::make(checked(handle_, "prepare an endpoint").prepare(options));
}

void ConnectionRequest::accept() { checked(handle_, "accept").accept(); }

Endpoint ConnectionRequest::accept(const EndpointOptions& options) {
  Endpoint endpoint = prepare(options);
  accept();
  return endpoint;
}

void ConnectionRequest::reject(std::span<const std::byte> private_data) {
  checked(handle_, "reject").reject(private_data);
}

std::optional<ConnectionRequest> Listener::next() {
  core::ListenerHandle& handle = checked(handle_, "take an arrival");
  if (handle.context().is_inert()) return std::nullopt;
  handle.context().assist();
  std::shared_ptr<core::Arrival> arrival;
  {
    const std::lock_guard guard(handle.context().mutex());
    arrival = handle.core().next();
  }
  if (arrival == nullptr) return std::nullopt;
  return core::Opener::make(
      std::make_shared<core::RequestHandle>(handle.context_state(), std::move(arrival)));
}

std::string Listener::address() const {
  return checked(handle_, "tell the address").core().address().to_string();
}

std::uint16_t Listener::port() const { return checked(handle_, "tell the port").core().address().port(); }

void Listener::close() {
  core::ListenerHandle& handle = checked(handle_, "close");
  if (handle.context().is_inert()) return;
  const std::lock_guard guard(handle.context().mutex());
  handle.core().close();
}

}  // namespace weft
