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

// The core's side of a completion queue. Any thread, with the provider's locks held.
class QueueEvents {
 public:
  virtual ~QueueEvents() = default;
  // Something can be taken that descriptor() does not show by itself. Needed only after arm() returned true;
  // makes the core's descriptor readable; a system call.
  virtual void readable() noexcept = 0;
};

// All functions may be called from any thread at once in mode `safe`. In `single` they are called by one
// application thread at a time, and beside it by the core's helper thread through Context::service.
class CompletionQueue {
 public:
  // Called once no endpoint and no receive queue is attached.
  virtual ~CompletionQueue() = default;

  // Drives the attached endpoints and hands out what is there: at most `room` entries, written to `out`. With
  // room 0 it only drives. Returns how many. Never blocks, allocates or throws. Completions of one endpoint
  // come in order (ORD-3); `endpoint_ended` after all others of its endpoint are in their queues (ERR-7).
  // Room is given back when an entry is handed out (CMP-6).
  virtual std::size_t poll(Completion* out, std::size_t room) noexcept = 0;

  // A descriptor that becomes readable when the fabric has something after arm() returned true (PRG-4),
  // beside which QueueEvents::readable stands for everything else. Stays the provider's; the core puts it
  // into one epoll descriptor with its own. -1: the fabric has none and QueueEvents::readable alone wakes.
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

  // The value of Segment::region for this region: never 0, never reused within the process.
  [[nodiscard]] virtual std::uint64_t token() const noexcept = 0;
  [[nodiscard]] virtual std::span<const std::byte> key() const noexcept = 0;
  [[nodiscard]] virtual AtomicScope atomic_scope() const noexcept = 0;

  // ok: no transfer, local or remote, touches the memory any more. busy: a local operation uses it and
  // nothing changed; that passes without further calls of the program (MEM-5). again: local use is over,
  // remote use is refused from now on and running out: the core calls again, and ends collect_users() after 1
  // s. Does not block.
  virtual Status deregister() noexcept = 0;

  // Adds the ids of endpoints that use the region now, by outstanding operations of this side or of the peer.
  // The core ends them before it deregisters when the last handle goes (ERR-5).
  virtual void collect_users(std::vector<std::uint32_t>& endpoint_ids) = 0;
  // The last handle goes: receives that name the region and wait in shared queues leave them and complete as
  // cancelled (ERR-5). Where a fabric cannot take a posted receive back, it fails when it is taken; the
  // memory is not touched.
  virtual void cancel_shared_receives() noexcept = 0;
};

}  // namespace weft::provider
