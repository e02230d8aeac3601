#include "ucx_context.hpp"

#include <unistd.h>

#include <utility>

#include "ucx_endpoint.hpp"
#include "ucx_queue.hpp"

namespace weft::ucx {

namespace {

engine::MessageOptions messages_for(const Lanes& lanes) {
  engine::MessageOptions options;
  options.buffers.size = static_cast<std::uint32_t>(lanes.message_size);
  options.small_message = options.buffers.size;
  options.pieces_from = static_cast<std::uint32_t>(lanes.pieces_from);
  return options;
}

}  // namespace

UcxContext::UcxContext(provider::Host& host, const provider::OpenRequest& request, Library library)
    : engine::MessageContext(host, request, engine::EngineOptions{}, messages_for(*library.lanes)),
      library_(std::move(library)),
      owner_(getpid()),
      peer_timeout_(request.peer_timeout) {
  fill_attributes(attributes_);
  attributes_.provider = "ucx";
  attributes_.provider_version = version_text();
  attributes_.fabric = library_.transports;
  attributes_.device = library_.devices;
  attributes_.segment_size = library_.lanes->message_size;
  attributes_.trust = library_.lanes->trust;
  attributes_.trust_text = library_.lanes->trust_text;
  if (!library_.rdma.name.empty()) {
    attributes_.local_address = ip_text(library_.rdma.address);
    attributes_.met_there_only = true;
  }
}

UcxContext::~UcxContext() {
  // In a child UCX is the parent's (MEM-7).
  if (kept_ || getpid() != owner_) static_cast<void>(library_.context.release());
}

std::unique_ptr<provider::CompletionQueue> UcxContext::create_completion_queue(
    std::uint32_t capacity, provider::QueueEvents& events) {
  auto queue = std::make_unique<UcxQueue>(*this, capacity, events);
  look_after(*queue);
  return queue;
}

std::unique_ptr<provider::Endpoint> UcxContext::prepare_endpoint(const provider::EndpointRequest& request) {
  return std::make_unique<UcxEndpoint>(*this, static_cast<UcxQueue&>(queue_of(request)), request);
}

}  // namespace weft::ucx
