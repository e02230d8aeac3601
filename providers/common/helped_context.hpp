// A context whose queues are looked after while the program stays away (PRG-1, PRG-2, PRG-5). How bytes move
// is left to what derives from it: DescriptorContext, MessageContext.
#pragma once

#include <mutex>
#include <vector>

#include "context.hpp"
#include "helped_queue.hpp"

namespace weft::engine {

class HelpedContext : public Context {
 public:
  // Throws Error(resource_limit) when there is no descriptor left.
  HelpedContext(provider::Host& host, const provider::OpenRequest& request, const EngineOptions& options);
  ~HelpedContext() override;

  // ---- provider::Context
  Clock::time_point service(Clock::time_point now) noexcept final;
  [[nodiscard]] int service_descriptor() noexcept final { return helper_epoll_; }
  void enter_child() noexcept final;

  // ---- for queues
  // The helper looks after the queue from now on, until forget().
  void look_after(HelpedQueue& queue);
  void forget(HelpedQueue& queue) noexcept;
  void request_service() noexcept { events_->request_service(); }

 protected:
  // The queue that drives an endpoint, for prepare_endpoint: that of the receive side. When the send side has
  // another queue, polling that one drives the endpoint as well.
  [[nodiscard]] static HelpedQueue& leading_queue(const provider::EndpointRequest& request);

 private:
  Clock::time_point look_at(HelpedQueue& queue, Clock::time_point now) noexcept;

  const bool helped_;
  provider::ContextEvents* events_;
  int helper_epoll_ = -1;
  std::mutex service_mutex_;
  std::vector<HelpedQueue*> queues_;
};

}  // namespace weft::engine
