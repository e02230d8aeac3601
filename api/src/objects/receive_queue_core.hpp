// A receive queue shared by endpoints (RCQ-1).
#pragma once

#include <memory>

#include "objects/queue_core.hpp"
#include "weft/receive_queue.hpp"

namespace weft::core {

class ReceiveQueueCore {
 public:
  ReceiveQueueCore(ContextCore& context, std::shared_ptr<QueueCore> queue, std::uint32_t depth,
                   std::uint64_t user_value)
      : queue_(std::move(queue)),
        provider_(context.provider().create_receive_queue(queue_->provider(), depth, user_value)) {}

  [[nodiscard]] const std::shared_ptr<QueueCore>& queue() const noexcept { return queue_; }
  [[nodiscard]] provider::ReceiveQueue& provider() noexcept { return *provider_; }

 private:
  std::shared_ptr<QueueCore> queue_;  // outlives provider_
  std::unique_ptr<provider::ReceiveQueue> provider_;
};

class ReceiveQueueState {
 public:
  ReceiveQueueState(std::shared_ptr<ContextState> context, std::shared_ptr<ReceiveQueueCore> core) noexcept
      : context_(std::move(context)), core_(std::move(core)) {}
  ~ReceiveQueueState() {
    if (context_->core().is_inert()) {
      leak(std::move(core_));
      leak(std::move(context_));
    }
  }
  ReceiveQueueState(const ReceiveQueueState&) = delete;
  ReceiveQueueState& operator=(const ReceiveQueueState&) = delete;

  [[nodiscard]] const std::shared_ptr<ReceiveQueueCore>& shared() noexcept { return core_; }
  [[nodiscard]] provider::ReceiveQueue& provider() noexcept { return core_->provider(); }
  [[nodiscard]] ContextCore& context() noexcept { return context_->core(); }

 private:
  std::shared_ptr<ContextState> context_;  // destroyed last
  std::shared_ptr<ReceiveQueueCore> core_;
};

}  // namespace weft::core
