#include "decorators/common/context.hpp"

#include <utility>

namespace weft::decorator {

Context::Context(std::unique_ptr<provider::Context> inner)
    : attributes_(inner->attributes()), inner_(std::move(inner)) {}

std::unique_ptr<CompletionQueue> Context::make_queue(std::uint32_t /*capacity*/,
                                                     provider::QueueEvents& events) {
  return std::make_unique<CompletionQueue>(events);
}

std::unique_ptr<ReceiveQueue> Context::make_receive_queue(CompletionQueue& /*queue*/,
                                                          std::uint32_t /*depth*/) {
  return std::make_unique<ReceiveQueue>();
}

std::unique_ptr<MemoryRegion> Context::make_region(const RegistrationRequest& /*request*/) {
  return std::make_unique<MemoryRegion>();
}

std::unique_ptr<Endpoint> Context::make_endpoint(const provider::EndpointRequest& request) {
  return std::make_unique<Endpoint>(request);
}

std::unique_ptr<provider::CompletionQueue> Context::create_completion_queue(std::uint32_t capacity,
                                                                            provider::QueueEvents& events) {
  auto queue = make_queue(capacity, events);
  queue->wrap(inner_->create_completion_queue(capacity, *queue));
  return queue;
}

std::unique_ptr<provider::ReceiveQueue> Context::create_receive_queue(provider::CompletionQueue& queue,
                                                                      std::uint32_t depth,
                                                                      std::uint64_t user_value) {
  auto& ours = static_cast<CompletionQueue&>(queue);
  auto receives = make_receive_queue(ours, depth);
  receives->wrap(inner_->create_receive_queue(ours.inner(), depth, user_value));
  return receives;
}

std::unique_ptr<provider::MemoryRegion> Context::register_memory(const RegistrationRequest& request) {
  auto region = make_region(request);
  region->wrap(inner_->register_memory(request));
  return region;
}

std::unique_ptr<provider::Endpoint> Context::prepare_endpoint(const provider::EndpointRequest& request) {
  auto endpoint = make_endpoint(request);
  // The wrapped provider knows its own queues only.
  provider::EndpointRequest theirs = request;
  theirs.send_queue = &static_cast<CompletionQueue*>(request.send_queue)->inner();
  theirs.receive_queue = &static_cast<CompletionQueue*>(request.receive_queue)->inner();
  if (request.shared_receives != nullptr) {
    theirs.shared_receives = &static_cast<ReceiveQueue*>(request.shared_receives)->inner();
  }
  theirs.events = endpoint.get();
  endpoint->wrap(inner_->prepare_endpoint(theirs));
  return endpoint;
}

void Context::enter_child() noexcept {
  inert_.store(true, std::memory_order_relaxed);
  inner_->enter_child();
}

bool Context::complete_sends_when_matched() noexcept {
  auto* const switches = dynamic_cast<provider::StrictSwitches*>(inner_.get());
  return switches != nullptr && switches->complete_sends_when_matched();
}

bool Context::hold_writes() noexcept {
  auto* const switches = dynamic_cast<provider::StrictSwitches*>(inner_.get());
  return switches != nullptr && switches->hold_writes();
}

}  // namespace weft::decorator
