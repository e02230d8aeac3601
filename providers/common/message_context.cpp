#include "message_context.hpp"

namespace weft::engine {

MessageContext::MessageContext(provider::Host& host, const provider::OpenRequest& request,
                               const EngineOptions& options, const MessageOptions& message_options)
    : HelpedContext(host, request, options), message_options_(message_options) {}

std::vector<Counter> MessageContext::counters() const {
  std::vector<Counter> counters = Context::counters();
  counters.push_back({"messages_dropped", message_counts_.dropped.load(std::memory_order_relaxed)});
  counters.push_back({"messages_duplicate", message_counts_.duplicates.load(std::memory_order_relaxed)});
  counters.push_back({"messages_out_of_order", message_counts_.out_of_order.load(std::memory_order_relaxed)});
  counters.push_back({"doorbells", message_counts_.rings.load(std::memory_order_relaxed)});
  return counters;
}

}  // namespace weft::engine
