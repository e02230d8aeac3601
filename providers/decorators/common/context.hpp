// A context that wraps every object of the context it stands in front of. A decorator derives from it and
// makes its own objects in the make_ functions; what it leaves out is forwarded.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "decorators/common/endpoint.hpp"
#include "decorators/common/objects.hpp"
#include "weft/provider/context.hpp"
#include "weft/provider/strict.hpp"

namespace weft::decorator {

class Context : public provider::Context, public provider::StrictSwitches {
 public:
  explicit Context(std::unique_ptr<provider::Context> inner);

  [[nodiscard]] const Attributes& attributes() const noexcept override { return attributes_; }
  [[nodiscard]] std::vector<Counter> counters() const override { return inner_->counters(); }
  [[nodiscard]] bool keeps_connection() const noexcept override { return inner_->keeps_connection(); }
  [[nodiscard]] ProtocolRange protocol() const noexcept override { return inner_->protocol(); }
  [[nodiscard]] std::unique_ptr<provider::CompletionQueue> create_completion_queue(
      std::uint32_t capacity, provider::QueueEvents& events) override;
  [[nodiscard]] std::unique_ptr<provider::ReceiveQueue> create_receive_queue(
      provider::CompletionQueue& queue, std::uint32_t depth, std::uint64_t user_value) override;
  [[nodiscard]] std::unique_ptr<provider::MemoryRegion> register_memory(
      const RegistrationRequest& request) override;
  [[nodiscard]] std::unique_ptr<provider::Endpoint> prepare_endpoint(
      const provider::EndpointRequest& request) override;
  Clock::time_point service(Clock::time_point now) noexcept override { return inner_->service(now); }
  [[nodiscard]] int service_descriptor() noexcept override { return inner_->service_descriptor(); }
  void enter_child() noexcept override;
  // So that `strict` reaches through.
  bool complete_sends_when_matched() noexcept override;
  bool hold_writes() noexcept override;

  // A forked child: the decorator's own locks may be held by threads that are gone (MEM-7). Objects ask
  // before they do anything but forward.
  [[nodiscard]] bool inert() const noexcept { return inert_.load(std::memory_order_relaxed); }

 protected:
  [[nodiscard]] provider::Context& inner() const noexcept { return *inner_; }
  // What the wrapped context states; a decorator changes in its constructor what it changes.
  Attributes attributes_;

  // What wraps the object that is made next. Throw Error to refuse.
  [[nodiscard]] virtual std::unique_ptr<CompletionQueue> make_queue(std::uint32_t capacity,
                                                                    provider::QueueEvents& events);
  [[nodiscard]] virtual std::unique_ptr<ReceiveQueue> make_receive_queue(CompletionQueue& queue,
                                                                         std::uint32_t depth);
  [[nodiscard]] virtual std::unique_ptr<MemoryRegion> make_region(const RegistrationRequest& request);
  // `request` as the core made it: with the decorator's own queues.
  [[nodiscard]] virtual std::unique_ptr<Endpoint> make_endpoint(const provider::EndpointRequest& request);

 private:
  const std::unique_ptr<provider::Context> inner_;
  std::atomic<bool> inert_{false};
};

}  // namespace weft::decorator
