// A TCP context: engine limits, sockets, and progress while the program stays away.
#pragma once

#include "common/context.hpp"

namespace weft::tcp {

class TcpQueue;

class TcpContext final : public engine::Context {
 public:
  TcpContext(provider::Host& host, const provider::OpenRequest& request);
  ~TcpContext() override;

  [[nodiscard]] const Attributes& attributes() const noexcept override { return attributes_; }
  [[nodiscard]] bool keeps_connection() const noexcept override { return true; }
  [[nodiscard]] ProtocolRange protocol() const noexcept override { return {1, 1}; }
  [[nodiscard]] std::unique_ptr<provider::CompletionQueue> create_completion_queue(
      std::uint32_t capacity, provider::QueueEvents& events) override;
  [[nodiscard]] std::unique_ptr<provider::Endpoint> prepare_endpoint(
      const provider::EndpointRequest& request) override;
  Clock::time_point service(Clock::time_point now) noexcept override;
  [[nodiscard]] int service_descriptor() noexcept override { return helper_epoll_; }
  void enter_child() noexcept override;

  // A queue is about to go: the helper must not look at it any more.
  void forget(TcpQueue& queue) noexcept;
  void request_service() noexcept { events_->request_service(); }

 private:
  Clock::time_point look_at(TcpQueue& queue, Clock::time_point now) noexcept;

  Attributes attributes_;
  const bool helped_;
  provider::ContextEvents* events_;
  int helper_epoll_ = -1;
  std::mutex service_mutex_;
  std::vector<TcpQueue*> queues_;
};

}  // namespace weft::tcp
