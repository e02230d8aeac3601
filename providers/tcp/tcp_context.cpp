#include "tcp_context.hpp"

#include <sys/socket.h>

#include <cerrno>

#include "tcp_endpoint.hpp"

namespace weft::tcp {

TcpContext::TcpContext(provider::Host& host, const provider::OpenRequest& request)
    : engine::DescriptorContext(host, request, engine::EngineOptions{}) {
  fill_attributes(attributes_);
  attributes_.provider = "tcp";
  attributes_.provider_version = "0.1.0";
  attributes_.fabric = "sockets";
  attributes_.device = request.device.empty() ? "any" : std::string(request.device);
  attributes_.trust = Trust::nobody;
  attributes_.trust_text =
      "Nothing is encrypted, and peers are not authenticated: whoever can reach the port can connect "
      "and be accepted. A peer reaches only what it was given keys for.";
}

std::ptrdiff_t TcpContext::receive_plainly(int descriptor, std::byte* place, std::size_t length) noexcept {
  const ssize_t received = ::recv(descriptor, place, length, MSG_DONTWAIT);
  return received >= 0 ? received : -errno;
}

std::unique_ptr<provider::Endpoint> TcpContext::prepare_endpoint(const provider::EndpointRequest& request) {
  return std::make_unique<TcpEndpoint>(*this, queue_of(request), request);
}

}  // namespace weft::tcp
