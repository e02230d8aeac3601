#include "unix_context.hpp"

#include <charconv>
#include <string>

#include "unix_endpoint.hpp"

namespace unix_provider {

namespace {

using weft::Error;
using weft::Status;

std::optional<int> chosen_buffer(const weft::provider::Host& host) {
  const auto text = host.variable(buffer_variable);
  if (!text) return {};
  constexpr int least = 4096;
  constexpr int most = 1 << 30;
  int value = 0;
  const char* const end = text->data() + text->size();
  const auto [read_to, problem] = std::from_chars(text->data(), end, value);
  if (problem != std::errc{} || read_to != end || value < least || value > most) {
    throw Error(Status::invalid_argument, std::string(buffer_variable) + " is '" + *text +
                                              "'; allowed: " + std::to_string(least) + " to " +
                                              std::to_string(most) + " bytes, or unset");
  }
  return value;
}

}  // namespace

UnixContext::UnixContext(weft::provider::Host& host, const weft::provider::OpenRequest& request)
    : DescriptorContext(host, request, weft::engine::EngineOptions{}), buffer_(chosen_buffer(host)) {
  fill_attributes(attributes_);
  attributes_.provider = name;
  attributes_.provider_version = version;
  attributes_.fabric = "sockets";
  attributes_.device = "this host";
  attributes_.trust = weft::Trust::nobody;
  attributes_.trust_text =
      "Nothing is encrypted, and peers are not authenticated: whoever can reach the listener's port can "
      "connect and "
      "be accepted. A peer reaches only what it was given keys for. The bytes stay inside this host.";
}

std::unique_ptr<weft::provider::Endpoint> UnixContext::prepare_endpoint(
    const weft::provider::EndpointRequest& request) {
  return std::make_unique<UnixEndpoint>(*this, queue_of(request), request);
}

}  // namespace unix_provider
