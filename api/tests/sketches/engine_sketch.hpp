// What the sketches for message fabrics assume of the engine: it keeps the whole contract over a transport
// that only moves frames. Declared here as far as the sketches need it, defined nowhere: they are compiled,
// not linked.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "weft/provider/context.hpp"
#include "weft/provider/provider.hpp"

namespace weft::sketch::engine {

// Entries that are ready, and who sleeps for them (CMP-6, ERR-7, PRG-3).
class Queue {
 public:
  Queue(std::uint32_t capacity, provider::QueueEvents& events);
  std::size_t take(Completion* out, std::size_t room) noexcept;
  // False: something can be taken. True: the next entry calls QueueEvents::readable().
  bool arm() noexcept;
  void wake() noexcept;
};

// RCQ-1: receives are matched by the engine, so a shared queue needs nothing of the fabric.
class SharedReceives : public provider::ReceiveQueue {
 public:
  SharedReceives(Queue& queue, std::uint32_t depth, std::uint64_t user_value);
  PostResult post(const ReceiveRequest* requests, std::size_t count) noexcept override;
  void set_low_water(std::uint32_t mark) noexcept override;
};

// Token, key with range and rights, uses (MEM-1 to MEM-5, OPS-5, SEC-2). A transport adds its own
// registration.
class Region : public provider::MemoryRegion {
 public:
  Region(provider::Host& host, const RegistrationRequest& request);
  std::uint64_t token() const noexcept override;
  std::span<const std::byte> key() const noexcept override;
  AtomicScope atomic_scope() const noexcept override;
  Status deregister() noexcept override;  // `again` while a pull into or out of it runs
  void collect_users(std::vector<std::uint32_t>& endpoint_ids) override;
  void cancel_shared_receives() noexcept override;  // the engine's own queue: they are taken out

 protected:
  // Called once nothing uses the region any more, before deregister() answers ok.
  virtual void release() noexcept = 0;
};

// Payload that the target fetches after it has checked or matched it: from the place the peer announced.
struct Pull {
  std::uint64_t id = 0;  // chosen by the source
  std::byte* to = nullptr;
  std::uint64_t length = 0;
  Region* into = nullptr;            // whose registration covers `to`
  std::uint64_t source_address = 0;  // as the source's transport described it in announce()
  std::uint64_t source_key = 0;
};

// The engine's half of an endpoint. The transport calls the protected part with its lock held.
class Endpoint : public provider::Endpoint {
 public:
  Endpoint(const provider::EndpointRequest& request, Queue& send_queue, Queue& receive_queue);

  Limits limits() const noexcept override;
  void go_up() noexcept override;
  bool withdraw_connect_report() noexcept override;
  PostResult post(const WorkRequest* requests, std::size_t count) noexcept override;
  PostResult post_receives(const ReceiveRequest* requests, std::size_t count) noexcept override;
  Imported import_key(std::span<const std::byte> key) override;
  void release_key(std::uint64_t token) noexcept override;
  void drain() noexcept override;
  void end(const provider::EndOrder& order) noexcept override;
  void silence() noexcept override;

  // ---- what the transport tells
  // The next bytes of the peer's stream, in order. They may be the transport's: what is kept is copied.
  void arrived(std::span<const std::byte> bytes) noexcept;
  void room() noexcept;  // transmit() may be tried again; also sends what was held back (PRG-5)
  void pulled(std::uint64_t id, Status status, std::int32_t native_code) noexcept;
  // The announced payload `id` of this side; empty when there is none (the peer's number is hostile).
  std::span<const std::byte> announced(std::uint64_t id) noexcept;
  void sent_payload(std::uint64_t id, Status status, std::int32_t native_code) noexcept;
  void detached() noexcept;  // after detach(): cancels what is left, reports the end
  void path_broken(std::int32_t native_code, std::string_view text) noexcept;
  bool moving() const noexcept;
  bool holds_back() const noexcept;

 protected:
  std::vector<std::byte> engine_blob() const;
  void accept_engine_blob(std::span<const std::byte> blob, const provider::PeerParameters& peer);  // throws

  // ---- what the engine asks of the transport
  // Takes bytes off the front of the pieces into a frame; how many, 0: no room now, room() follows.
  virtual std::ptrdiff_t transmit(const iovec* pieces, int count) noexcept = 0;
  // Starts to fetch; pulled() follows. False: no room now.
  virtual bool pull(const Pull& pull) noexcept = 0;
  // How the peer's transport can fetch from here: fills source_address and source_key.
  virtual void announce(Region& region, std::uint64_t offset, Pull& description) noexcept = 0;
  // Afterwards nothing touches the program's memory; detached() follows.
  virtual void detach() noexcept = 0;

  const provider::EndpointRequest request_;
};

}  // namespace weft::sketch::engine
