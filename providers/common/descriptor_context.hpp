// A context of endpoints with a descriptor each. What is left to a transport: attributes, protocol,
// keeps_connection and prepare_endpoint.
#pragma once

#include <memory>

#include "descriptor_queue.hpp"
#include "helped_context.hpp"

namespace weft::engine {

class DescriptorContext : public HelpedContext {
 public:
  using HelpedContext::HelpedContext;

  // ---- provider::Context
  [[nodiscard]] std::unique_ptr<provider::CompletionQueue> create_completion_queue(
      std::uint32_t capacity, provider::QueueEvents& events) final;

 protected:
  // The queue that drives an endpoint, for prepare_endpoint.
  [[nodiscard]] static DescriptorQueue& queue_of(const provider::EndpointRequest& request) {
    return static_cast<DescriptorQueue&>(leading_queue(request));
  }
};

}  // namespace weft::engine
