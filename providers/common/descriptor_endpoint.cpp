#include "descriptor_endpoint.hpp"

#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "descriptor_context.hpp"

namespace weft::engine {

DescriptorEndpoint::DescriptorEndpoint(DescriptorContext& context, DescriptorQueue& queue,
                                       const provider::EndpointRequest& request)
    : Endpoint(context, queue, request), queue_(queue) {}

DescriptorEndpoint::~DescriptorEndpoint() {
  const HelperEntry entry(queue_.gate());
  detach();
}

void DescriptorEndpoint::attach() noexcept {
  descriptor_ = take_descriptor();
  queue_.add(*this);
}

void DescriptorEndpoint::detach() noexcept {
  if (descriptor_ < 0) return;
  queue_.remove(*this);
  ::close(std::exchange(descriptor_, -1));
}

bool DescriptorEndpoint::receive_rest(std::ptrdiff_t /*length*/) noexcept { std::abort(); }

void DescriptorEndpoint::close_in_child() noexcept {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

void DescriptorEndpoint::output_waits(bool waits) noexcept {
  if (waits_for_room_ == waits) return;
  waits_for_room_ = waits;
  queue_.output_waits(*this, waits);
}

}  // namespace weft::engine
