#include "context.hpp"

#include "endpoint.hpp"
#include "queue.hpp"

namespace weft::ofi {

OfiContext::OfiContext(provider::Host& host, const provider::OpenRequest& request,
                       std::unique_ptr<Device> device, const engine::EngineOptions& engine_options,
                       const engine::MessageOptions& options)
    : MessageContext(host, request, engine_options, options),
      interface_(Device::interface_of(device->fabric(), request.device)),
      device_(std::move(device)) {
  fill_attributes(attributes_);
  const Fabric& fabric = device_->fabric();
  attributes_.provider = "ofi";
  attributes_.provider_version = provider_version;
  attributes_.fabric = fabric.name;
  attributes_.device = request.device.empty() ? (fabric.by_address ? "any" : device_->device_name())
                                              : std::string(request.device);
  // As good as bound, where there is nothing to choose.
  if (fabric.by_device && request.address.empty()) attributes_.local_address = device_->only_address();
  attributes_.segment_size = options.buffers.size;
  attributes_.trust = fabric.trust;
  attributes_.trust_text = fabric.trust_text;
}

OfiContext::~OfiContext() {
  if (abandoned_) static_cast<void>(device_.release());
}

std::unique_ptr<provider::CompletionQueue> OfiContext::create_completion_queue(
    std::uint32_t capacity, provider::QueueEvents& events) {
  auto queue = std::make_unique<OfiQueue>(*this, capacity, events);
  look_after(*queue);
  return queue;
}

std::unique_ptr<provider::Endpoint> OfiContext::prepare_endpoint(const provider::EndpointRequest& request) {
  return std::make_unique<OfiEndpoint>(*this, static_cast<OfiQueue&>(queue_of(request)), request);
}

}  // namespace weft::ofi
