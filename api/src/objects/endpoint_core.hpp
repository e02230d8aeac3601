// One end of a connection, as the core sees it: who it is, whether it is up, and why and how it ends. The
// provider's endpoint moves the bytes.
//
//   connecting -> up -> draining -> ending -> ended       (any state may go to ending)
//
// Its context's list holds it until it has ended; the program's handle and a handshake under way hold it too.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "address.hpp"
#include "bootstrap/link.hpp"
#include "bootstrap/timers.hpp"
#include "bootstrap/wire.hpp"
#include "objects/context_core.hpp"
#include "weft/endpoint.hpp"
#include "weft/provider/endpoint.hpp"

namespace weft::core {

class QueueCore;
class ReceiveQueueCore;

// A handshake under way, to be given up when its endpoint is closed.
class Attempt {
 public:
  virtual ~Attempt() = default;
  // Ends it; the endpoint knows already. `text` is for the peer.
  virtual void abandon(Status status, const std::string& text) noexcept = 0;
  // The provider's path is ready, which it was not at once.
  virtual void on_established() = 0;
  // The look-up it asked for is answered.
  virtual void on_resolved(Resolution resolution) = 0;
};

class EndpointCore final : public provider::EndpointEvents,
                           public Link::User,
                           public std::enable_shared_from_this<EndpointCore> {
 public:
  enum class Phase : std::uint8_t { connecting, up, draining, ending, ended };

  // Checks the options (Error(invalid_argument)) and makes the provider's endpoint. Without the mutex.
  [[nodiscard]] static std::shared_ptr<EndpointCore> make(ContextCore& context,
                                                          const EndpointOptions& options);
  explicit EndpointCore(ContextCore& context) noexcept : context_(context) {}
  ~EndpointCore() override;
  EndpointCore(const EndpointCore&) = delete;
  EndpointCore& operator=(const EndpointCore&) = delete;

  // ---- fixed once made
  [[nodiscard]] ContextCore& context() const noexcept { return context_; }
  [[nodiscard]] provider::Endpoint& provider() const noexcept { return *provider_; }
  [[nodiscard]] std::uint32_t id() const noexcept { return id_; }
  [[nodiscard]] std::uint64_t user_value() const noexcept { return user_value_; }
  [[nodiscard]] QueueCore& receive_queue() const noexcept { return *receive_queue_; }

  // ---- from here on with the context's mutex held
  [[nodiscard]] Phase phase() const noexcept { return phase_; }
  [[nodiscard]] bool was_up() const noexcept { return was_up_; }
  [[nodiscard]] Status cause() const noexcept;
  [[nodiscard]] std::string describe_end() const;
  [[nodiscard]] Link* link() const noexcept { return link_.get(); }
  [[nodiscard]] const wire::Bytes& peer_private_data() const noexcept { return peer_private_data_; }
  [[nodiscard]] std::string local_address() const { return local_ ? local_.to_string() : std::string(); }
  [[nodiscard]] std::string peer_address() const { return peer_ ? peer_.to_string() : std::string(); }
  // For messages.
  [[nodiscard]] std::string peer_name() const { return peer_ ? peer_.to_string() : std::string("the peer"); }
  [[nodiscard]] Status connect_status() const noexcept { return connect_status_; }

  // ---- for the handshakes
  void begin(std::shared_ptr<Attempt> attempt) { attempt_ = std::move(attempt); }
  void set_addresses(int socket);
  void set_private_data(wire::Bytes data) { peer_private_data_ = std::move(data); }
  [[nodiscard]] wire::Bytes blob() const;
  // From here on the peer can be told of the end and be rung, and can do the same.
  void attach(std::shared_ptr<Link> link, std::uint32_t peer_id);
  // What the handshake found out.
  struct Peer {
    Limits limits;
    std::span<const std::byte> blob;
    std::uint16_t protocol = 0;
    bool initiator = false;
    int connection = -1;
  };
  // Lets the provider make its path; throws Error. False: the attempt's on_established() follows.
  [[nodiscard]] bool establish(const Peer& peer);
  // The provider takes the connection over, if it keeps it.
  void go_up();
  // The attempt failed: the outcome goes to the program's queue.
  void fail_connect(Status status, const std::string& text, bool reported = true);

  // ---- for the program
  void close(std::chrono::nanoseconds deadline);
  void abort(const std::string& why);
  // The last handle is gone: nothing of it is reported any more.
  void silence() noexcept;

  // ---- what happened elsewhere
  void on_resolved(Resolution resolution) {
    if (const auto attempt = attempt_) attempt->on_resolved(std::move(resolution));
  }
  void on_peer_end(const wire::End& frame);
  void on_link_lost(const std::string& why) override;
  void on_failed(Status cause, std::uint64_t detail, std::int32_t native_code, const std::string& text);
  void on_established() {
    if (const auto attempt = attempt_) attempt->on_established();
  }
  void on_ring();  // the provider rings at the peer
  void on_rung();  // the peer rang
  void on_drained(std::uint64_t messages_sent);
  void on_finished();

  // ---- EndpointEvents: from any thread, the provider's locks held
  void failed(Status cause, std::uint64_t detail, std::int32_t native_code,
              std::string_view text) noexcept override;
  void established() noexcept override;
  void ring_peer() noexcept override;
  void drained(std::uint64_t messages_sent) noexcept override;
  void finished() noexcept override;

 private:
  void prepare(const EndpointOptions& options);
  // Ends the provider's endpoint; the first call fixes cause and text.
  void end(provider::EndOrder order, std::string text);
  void tell_peer(Status cause, std::uint64_t detail, std::int32_t native_code, const std::string& text);
  void tell_peer_after(std::uint64_t messages);
  void give_up_attempt(Status status, const std::string& text) noexcept;
  void cancel_timers() noexcept;
  void release_link() noexcept;

  ContextCore& context_;
  std::shared_ptr<QueueCore> send_queue_;  // both outlive provider_
  std::shared_ptr<QueueCore> receive_queue_;
  std::shared_ptr<ReceiveQueueCore> shared_receives_;
  std::unique_ptr<provider::Endpoint> provider_;
  std::uint32_t id_ = 0;
  std::uint64_t user_value_ = 0;

  Phase phase_ = Phase::connecting;
  bool was_up_ = false;
  bool silenced_ = false;
  bool path_broken_ = false;     // the provider cannot go on and does not know why
  bool waits_messages_ = false;  // ended by the peer, its last messages are not yet matched
  Status cause_ = Status::ok;
  Status connect_status_ = Status::again;  // the attempt's outcome; again: not yet known
  std::string end_text_;
  std::optional<wire::End> early_end_;  // the peer's word, come before this side was up
  std::shared_ptr<Attempt> attempt_;
  std::shared_ptr<Link> link_;
  std::uint32_t peer_id_ = 0;       // 0: the peer cannot be told anything
  std::atomic<bool> rings_{false};  // a ring waits in the inbox
  Timers::Id close_timer_;
  Timers::Id word_timer_;  // how long to wait for the peer's word
  SocketAddress local_;
  SocketAddress peer_;
  wire::Bytes peer_private_data_;
};

}  // namespace weft::core
