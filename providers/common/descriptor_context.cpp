#include "descriptor_context.hpp"

namespace weft::engine {

std::unique_ptr<provider::CompletionQueue> DescriptorContext::create_completion_queue(
    std::uint32_t capacity, provider::QueueEvents& events) {
  auto queue = std::make_unique<DescriptorQueue>(*this, capacity, events);
  look_after(*queue);
  return queue;
}

}  // namespace weft::engine
