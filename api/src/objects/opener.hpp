// The core's key to the public handles: makes them and looks inside.
#pragma once

#include <memory>
#include <utility>

#include "weft/completion_queue.hpp"
#include "weft/context.hpp"
#include "weft/endpoint.hpp"
#include "weft/listener.hpp"
#include "weft/receive_queue.hpp"

namespace weft::core {

struct Opener {
  [[nodiscard]] static const std::shared_ptr<QueueState>& state(const CompletionQueue& queue) noexcept {
    return queue.state_;
  }
  [[nodiscard]] static const std::shared_ptr<ReceiveQueueState>& state(const ReceiveQueue& queue) noexcept {
    return queue.state_;
  }
  [[nodiscard]] static const std::shared_ptr<ContextState>& state(const Context& context) noexcept {
    return context.state_;
  }
  [[nodiscard]] static Context make(std::shared_ptr<ContextState> state) { return Context(std::move(state)); }
  [[nodiscard]] static Endpoint make(std::shared_ptr<EndpointHandle> handle) {
    return Endpoint(std::move(handle));
  }
  [[nodiscard]] static ConnectionRequest make(std::shared_ptr<RequestHandle> handle) {
    return ConnectionRequest(std::move(handle));
  }
};

}  // namespace weft::core
