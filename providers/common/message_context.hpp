// A context of endpoints over message fabrics. What is left to a transport: attributes, protocol,
// create_completion_queue (make the queue, then look_after it) and prepare_endpoint.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "helped_context.hpp"
#include "message_queue.hpp"

namespace weft::engine {

struct MessageOptions {
  SendBuffers::Shape buffers{};
  // Messages that may be ahead of one that is still missing. More breaks the endpoint (SEC-1).
  std::uint32_t most_ahead = 64;
  // Messages that may leave before the peer is known to be up; it keeps them until then.
  std::uint32_t most_early = 4;
  // What MessageEndpoint::submit_small() takes at most, header included; and from how many bytes on what lies
  // in several pieces goes that way too, each piece in messages of its own. Fewer are gathered in a buffer.
  std::uint32_t small_message = 512;
  std::uint32_t pieces_from = ~0U;
  // Bytes that one endpoint fetches in one round of its queue.
  std::uint64_t pull_step = std::uint64_t{1024} * 1024;
};

class MessageContext : public HelpedContext {
 public:
  MessageContext(provider::Host& host, const provider::OpenRequest& request, const EngineOptions& options,
                 const MessageOptions& message_options);

  [[nodiscard]] bool keeps_connection() const noexcept override { return false; }
  [[nodiscard]] std::vector<Counter> counters() const override;
  [[nodiscard]] const MessageOptions& message_options() const noexcept { return message_options_; }

  // All rare, from any queue.
  struct MessageCounts {
    std::atomic<std::uint64_t> dropped{0};       // for nobody, or torn
    std::atomic<std::uint64_t> duplicates{0};    // dropped as well
    std::atomic<std::uint64_t> out_of_order{0};  // kept for a while
    std::atomic<std::uint64_t> rings{0};         // doorbells for sleepers
  };
  [[nodiscard]] MessageCounts& message_counts() noexcept { return message_counts_; }

 protected:
  // The queue that drives an endpoint, for prepare_endpoint.
  [[nodiscard]] static MessageQueue& queue_of(const provider::EndpointRequest& request) {
    return static_cast<MessageQueue&>(leading_queue(request));
  }

 private:
  const MessageOptions message_options_;
  MessageCounts message_counts_;
};

}  // namespace weft::engine
