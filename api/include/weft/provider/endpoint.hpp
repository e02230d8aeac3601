// One end of a connection, as a provider makes it. The core makes the connection itself: it exchanges the
// blobs over its own control connection, watches the peer's life, and decides why an endpoint ended; a
// provider moves bytes.
//
//   prepare (Context::prepare_endpoint) -> blob() … receives may be posted …
//   -> establish(peer) -> go_up() -> … -> [drain() -> drained] -> end(order) -> finished -> destructor
//
// Before establish the core may end() or destroy it at any time.
//
// Thread rules of everything but post and post_receives: any thread, also the core's helper beside the
// program's thread in mode `single`; never two of them at once for one endpoint, none after its destructor
// began. A provider whose fabric knows only one thread notes such a call and carries it out from its next
// poll, post or service; only silence and withdraw_connect_report need their answer at once. After
// Context::enter_child only the destructor is called, which then releases memory and nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/attributes.hpp"
#include "weft/flags.hpp"
#include "weft/status.hpp"
#include "weft/work_request.hpp"

namespace weft::provider {

class CompletionQueue;
class ReceiveQueue;

// Called by the provider, from any thread, also from inside post and poll with the provider's own locks held:
// the core only notes the event and wakes its helper, and calls back later from there.
class EndpointEvents {
 public:
  virtual ~EndpointEvents() = default;
  // The data path failed or the peer broke a rule: truncated, remote_access_error, protocol, peer_lost (the
  // path broke and it is not known why), aborted (this side's device failed; the text says how). `detail`
  // travels to the peer's end() (for instance the number of the operation at fault). Call it once; from then
  // on the endpoint moves nothing more and waits for end().
  virtual void failed(Status cause, std::uint64_t detail, std::int32_t native_code,
                      std::string_view text) noexcept = 0;
  // After establish() answered false: the path is ready now.
  virtual void established() noexcept = 0;
  // Rings at the peer: its Endpoint::rung() is called soon, over the core's own connection. At most one is
  // under way; a system call. For fabrics that cannot wake a sleeper themselves (PRG-3).
  virtual void ring_peer() noexcept = 0;
  // After drain(): every accepted send-side operation is complete, sends acknowledged by the peer's library.
  virtual void drained(std::uint64_t messages_sent) noexcept = 0;
  // After end(): nothing touches the program's memory any more and `endpoint_ended` is in its queue (or was
  // dropped).
  virtual void finished() noexcept = 0;
};

struct EndpointRequest {
  std::uint32_t id = 0;  // unique in the context, in every completion
  std::uint64_t user_value = 0;
  CompletionQueue* send_queue = nullptr;
  CompletionQueue* receive_queue = nullptr;  // with shared_receives: that queue's completion queue
  ReceiveQueue* shared_receives = nullptr;
  std::uint32_t send_depth = 0;
  std::uint32_t receive_depth = 0;
  std::uint32_t max_inline = 0;
  EndpointEvents* events = nullptr;  // outlives the endpoint
};

// The two ends of the core's connection to the peer, as sockaddr: this side as the peer reaches it, and the
// peer.
struct PathAddresses {
  std::span<const std::byte> local;
  std::span<const std::byte> peer;
};

// What the two cores agreed on.
struct PeerParameters {
  std::uint16_t protocol = 0;  // the highest version in both sides' Context::protocol() (CON-8)
  PathAddresses path;
  std::span<const std::byte> blob;  // the peer endpoint's blob(): hostile input, check every field
  Limits limits;                    // the smaller of both sides' limits()
  bool initiator = false;           // this side called connect; it establishes first
  std::uint32_t peer_id = 0;        // the peer's number for its endpoint
  // When Context::keeps_connection(): the connected TCP socket of the handshake (non-blocking, close-on-exec,
  // no keepalive, no TCP_USER_TIMEOUT). The core still uses it; with go_up() it becomes the endpoint's, which
  // from then on reads, writes and closes it. Without go_up() it stays the core's. -1 otherwise.
  int connection = -1;
};

struct EndOrder {
  Status cause = Status::aborted;
  // End only after this many messages of the peer were matched with receives (the peer closed gracefully
  // after sending so many). A later order without it overrides; the loss of the peer after that is no reason
  // for one.
  bool after_messages = false;
  std::uint64_t messages = 0;
  std::uint64_t detail = 0;  // as the peer's provider gave it to failed(); 0 when it did not come from there
  std::int32_t native_code = 0;
};

class Endpoint {
 public:
  // Called after finished(), or when establish was never called. From then on no poll returns an entry of it.
  virtual ~Endpoint() = default;

  // What the peer's provider needs to reach this endpoint, at most 4,096 bytes. Called once, when the core's
  // own connection to the peer stands. Throws Error: unreachable when the device does not own that address.
  [[nodiscard]] virtual std::vector<std::byte> blob(const PathAddresses& path) = 0;
  // This side's limits before establish; the negotiated ones afterwards (never above PeerParameters::limits).
  [[nodiscard]] virtual Limits limits() const noexcept = 0;

  // Makes the path ready in both directions; nothing is reported yet. True: ready. False: not yet, and
  // exactly one of events->established() and events->failed() follows, or end() comes first. Throws Error:
  // protocol for a bad blob, resource_limit, unreachable; the endpoint is then as before. Must not block.
  virtual bool establish(const PeerParameters& peer) = 0;
  // The endpoint is up: sends are accepted, completions are reported, the first of them `connect` with status
  // ok on the receive side's queue. What came before (the peer may be up a little earlier) was kept until
  // now.
  virtual void go_up() noexcept = 0;
  // Takes the `connect` report back; false when it was already handed out.
  virtual bool withdraw_connect_report() noexcept = 0;

  // Data path: OPS-1, OPS-2. No allocation, no exception, one doorbell or system call per batch.
  virtual PostResult post(const WorkRequest* requests, std::size_t count) noexcept = 0;
  virtual PostResult post_receives(const ReceiveRequest* requests, std::size_t count) noexcept = 0;

  // Imports a key of the peer (MEM-3). Throws Error: invalid_argument when it is malformed or altered,
  // not_connected when the endpoint is not up.
  struct Imported {
    std::uint64_t token = 0;  // RemoteSegment::memory; never 0, never reused within the process
    std::uint64_t length = 0;
    Access access = Access::none;
  };
  [[nodiscard]] virtual Imported import_key(std::span<const std::byte> key) = 0;
  // Operations posted before keep the key.
  virtual void release_key(std::uint64_t token) noexcept = 0;

  // Graceful close: no more posts (they answer not_connected); finish what was accepted, then
  // events->drained().
  virtual void drain() noexcept = 0;
  // Ends it: every outstanding operation completes exactly once, in order, the one at fault with its cause,
  // the others cancelled (ERR-2), then `endpoint_ended` when it had been up, then events->finished(). Does
  // not block.
  virtual void end(const EndOrder& order) noexcept = 0;
  // The peer rang (EndpointEvents::ring_peer).
  virtual void rung() noexcept = 0;
  // The last handle is gone: completions not yet taken are dropped, none is reported any more (ERR-5).
  virtual void silence() noexcept = 0;
};

}  // namespace weft::provider
