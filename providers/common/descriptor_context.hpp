// A context of endpoints with a descriptor each: their queues, and progress while the program stays away
// (PRG-1, PRG-2, PRG-5). What is left to a transport: attributes, protocol, keeps_connection and
// prepare_endpoint.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "context.hpp"
#include "descriptor_queue.hpp"

namespace weft::engine {

class DescriptorContext : public Context {
 public:
  // Throws Error(resource_limit) when there is no descriptor left.
  DescriptorContext(provider::Host& host, const provider::OpenRequest& request, const EngineOptions& options);
  ~DescriptorContext() override;

  // ---- provider::Context
  [[nodiscard]] std::unique_ptr<provider::CompletionQueue> create_completion_queue(
      std::uint32_t capacity, provider::QueueEvents& events) final;
  Clock::time_point service(Clock::time_point now) noexcept final;
  [[nodiscard]] int service_descriptor() noexcept final { return helper_epoll_; }
  void enter_child() noexcept final;

  // ---- for queues
  // A queue is about to go: the helper must not look at it any more.
  void forget(DescriptorQueue& queue) noexcept;
  void request_service() noexcept { events_->request_service(); }

 protected:
  // The queue that drives an endpoint, for prepare_endpoint: that of the receive side. When the send side has
  // another queue, polling that one drives the endpoint as well.
  [[nodiscard]] static DescriptorQueue& queue_of(const provider::EndpointRequest& request);

 private:
  Clock::time_point look_at(DescriptorQueue& queue, Clock::time_point now) noexcept;

  const bool helped_;
  provider::ContextEvents* events_;
  int helper_epoll_ = -1;
  std::mutex service_mutex_;
  std::vector<DescriptorQueue*> queues_;
};

}  // namespace weft::engine
