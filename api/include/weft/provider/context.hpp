// An open device of a provider.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "weft/attributes.hpp"
#include "weft/memory_region.hpp"
#include "weft/provider/endpoint.hpp"
#include "weft/provider/queues.hpp"

namespace weft::provider {

class Context {
 public:
  // Called when everything made from it is destroyed.
  virtual ~Context() = default;

  [[nodiscard]] virtual const Attributes& attributes() const noexcept = 0;
  [[nodiscard]] virtual std::vector<Counter> counters() const = 0;
  // True when an endpoint goes on using the TCP connection of its handshake (Endpoint::go_up).
  [[nodiscard]] virtual bool keeps_connection() const noexcept = 0;
  // Names the wire protocol below the handshake; both sides must state a common version (CON-8).
  struct ProtocolRange {
    std::uint16_t lowest = 1;
    std::uint16_t highest = 1;
  };
  [[nodiscard]] virtual ProtocolRange protocol() const noexcept = 0;

  // All throw Error on failure and leave nothing behind then.
  [[nodiscard]] virtual std::unique_ptr<CompletionQueue> create_completion_queue(std::uint32_t capacity,
                                                                                 QueueEvents& events) = 0;
  [[nodiscard]] virtual std::unique_ptr<ReceiveQueue> create_receive_queue(CompletionQueue& queue,
                                                                           std::uint32_t depth,
                                                                           std::uint64_t user_value) = 0;
  [[nodiscard]] virtual std::unique_ptr<MemoryRegion> register_memory(const RegistrationRequest& request) = 0;
  [[nodiscard]] virtual std::unique_ptr<Endpoint> prepare_endpoint(const EndpointRequest& request) = 0;

  // Progress for an absent program (PRG-1, PRG-2, PRG-5). The core's helper thread calls it when
  // service_descriptor() is readable and when the time it returned last has come; with `when_called` the core
  // calls it inside the program's calls instead. A program that is polling by itself must not be disturbed:
  // do nothing then, and ask to be called again in 10 ms. Returns when to call again at the latest;
  // time_point::max() for never.
  using Clock = std::chrono::steady_clock;
  virtual Clock::time_point service(Clock::time_point now) noexcept = 0;
  // -1: none.
  [[nodiscard]] virtual int service_descriptor() noexcept = 0;

  // Called in a forked child, with the parent's threads gone and locks in any state: close the descriptors
  // that keep connections up, make every object inert, wait for nothing (MEM-7). Data-path calls then answer
  // not_connected.
  virtual void enter_child() noexcept = 0;
};

}  // namespace weft::provider
