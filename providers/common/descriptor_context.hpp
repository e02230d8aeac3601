// A context of endpoints with a descriptor each. What is left to a transport: attributes, protocol,
// keeps_connection and prepare_endpoint.
#pragma once

#include <cstddef>
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

  // Receives what is there into one place, without looking at the endpoint: returns the bytes, zero at the
  // stream's end, -errno when that failed. With it a queue of many endpoints can ask the kernel for a message
  // while the processor fetches the endpoint it is for. None by default.
  using PlainReceive = std::ptrdiff_t (*)(int descriptor, std::byte* place, std::size_t length) noexcept;
  [[nodiscard]] virtual PlainReceive plain_receive() const noexcept { return nullptr; }

 protected:
  // The queue that drives an endpoint, for prepare_endpoint.
  [[nodiscard]] static DescriptorQueue& queue_of(const provider::EndpointRequest& request) {
    return static_cast<DescriptorQueue&>(leading_queue(request));
  }
};

}  // namespace weft::engine
