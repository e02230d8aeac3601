#include "ucx_context.hpp"

#include <unistd.h>

#include <new>
#include <utility>

#include "native_region.hpp"
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

// What was lent is given back by whoever makes progress; a program that has no helper may stay away for long.
engine::EngineOptions engine_for(const Lanes& lanes, const provider::OpenRequest& request) {
  engine::EngineOptions options;
  if (request.progress_mode == ProgressMode::automatic) options.native_from = lanes.native_from;
  return options;
}

}  // namespace

UcxContext::UcxContext(provider::Host& host, const provider::OpenRequest& request, Library library)
    : engine::MessageContext(host, request, engine_for(*library.lanes, request),
                             messages_for(*library.lanes)),
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
  if (!kept_ && getpid() == owner_) {
    reachable_.clear();  // UCX minds what is still registered
    return;
  }
  for (auto& region : reachable_) static_cast<void>(region.release());
  static_cast<void>(library_.context.release());
}

std::uint64_t UcxContext::make_reachable(std::byte* address, std::uint64_t length) noexcept {
  if (getpid() != owner_) return 0;
  try {
    reachable_.reserve(reachable_.size() + 1);
  } catch (const std::bad_alloc&) {
    return 0;
  }
  auto region = NativeRegion::make(library_.context.get(), address, length);
  if (region == nullptr) return 0;
  reachable_.push_back(std::move(region));
  return reinterpret_cast<std::uint64_t>(reachable_.back().get());
}

void UcxContext::make_unreachable(std::uint64_t native) noexcept {
  if (getpid() != owner_) return;
  std::erase_if(reachable_, [native](const auto& region) {
    return reinterpret_cast<std::uint64_t>(region.get()) == native;
  });
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
