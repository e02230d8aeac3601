// The queues and the regions of a provider.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "weft/attributes.hpp"
#include "weft/completion.hpp"
#include "weft/status.hpp"
#include "weft/work_request.hpp"

namespace weft::provider {

class Endpoint;

// All functions may be called from any thread at once in mode `safe`. In `single` they are called by one
// application thread at a time, and beside it by the core's helper thread only through Context::service.
class CompletionQueue {
 public:
  // Called once no endpoint and no receive queue is attached.
  virtual ~CompletionQueue() = default;

  // Drives the attached endpoints and hands out what is there: at most `room` entries, written to `out`. With
  // room 0 it only drives. Returns how many. Never blocks, allocates or throws. Completions of one endpoint
  // come in order (ORD-3); `endpoint_ended` after all others of its endpoint are in their queues (ERR-7).
  // Room is given back when an entry is handed out (CMP-6).
  virtual std::size_t poll(Completion* out, std::size_t room) noexcept = 0;

  // A descriptor that becomes readable when something happened after arm() returned true (PRG-4). Stays the
  // provider's. The core puts it beside its own into one epoll descriptor. -1: not available; then the core
  // sleeps in short steps and polls.
  [[nodiscard]] virtual int descriptor() = 0;
  [[nodiscard]] virtual bool arm() noexcept = 0;
};

// A receive queue shared by endpoints (RCQ-1).
class ReceiveQueue {
 public:
  // Called once no endpoint uses it. Receives not taken are dropped silently.
  virtual ~ReceiveQueue() = default;
  virtual PostResult post(const ReceiveRequest* requests, std::size_t count) noexcept = 0;
  virtual void set_low_water(std::uint32_t mark) noexcept = 0;
};

class MemoryRegion {
 public:
  // Called after deregister() answered ok.
  virtual ~MemoryRegion() = default;

  // The value of Segment::region for this region: never 0, never reused within the context's life.
  [[nodiscard]] virtual std::uint64_t token() const noexcept = 0;
  [[nodiscard]] virtual std::span<const std::byte> key() const noexcept = 0;
  [[nodiscard]] virtual AtomicScope atomic_scope() const noexcept = 0;

  // ok: no transfer, local or remote, touches the memory any more; busy: a local operation uses it and
  // nothing changed; `busy` passes without further calls of the program (MEM-5). Remote transfers in flight
  // are refused or cut.
  virtual Status deregister() noexcept = 0;

  // Adds the endpoints whose outstanding operations use the region now. The core ends them before it
  // deregisters when the last handle goes (ERR-5).
  virtual void collect_users(std::vector<Endpoint*>& users) = 0;
};

}  // namespace weft::provider
