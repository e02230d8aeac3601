// Everything behind an open context. The objects inside hold it by reference; only the states behind the
// public handles own it (ContextState), so the helper thread never destroys it.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "bootstrap/inbox.hpp"
#include "bootstrap/link_table.hpp"
#include "bootstrap/service.hpp"
#include "bootstrap/wire.hpp"
#include "open_provider.hpp"
#include "weft/context.hpp"

namespace weft::core {

class DialHandshake;
class EndpointCore;
class IncomingConnection;
class ListenerCore;
class QueueCore;

class ContextCore {
 public:
  // `bell`: what the provider was opened with.
  ContextCore(std::shared_ptr<ContextBell> bell, OpenedProvider opened, const ContextOptions& options);
  ~ContextCore();
  ContextCore(const ContextCore&) = delete;
  ContextCore& operator=(const ContextCore&) = delete;

  [[nodiscard]] provider::Context& provider() noexcept { return *provider_; }
  [[nodiscard]] Service& service() noexcept { return *service_; }
  [[nodiscard]] std::mutex& mutex() noexcept { return service_->mutex(); }
  [[nodiscard]] const std::shared_ptr<Inbox>& inbox() noexcept { return inbox_; }
  [[nodiscard]] const Attributes& attributes() const noexcept { return attributes_; }
  [[nodiscard]] const wire::Id& id() const noexcept { return id_; }
  [[nodiscard]] const std::string& provider_name() const noexcept { return provider_name_; }
  // The names of the plug-ins on this machine, for the text of a refusal (CON-8).
  [[nodiscard]] const std::vector<std::string>& available_providers() const noexcept { return available_; }
  [[nodiscard]] const std::string& provider_version() const noexcept { return attributes_.provider_version; }
  [[nodiscard]] const SocketAddress& local_address() const noexcept { return local_address_; }
  // The only one that peers can come to, when the provider's device is met at one; else no address.
  [[nodiscard]] const SocketAddress& met_at() const noexcept { return met_at_; }
  [[nodiscard]] std::chrono::milliseconds peer_timeout() const noexcept { return peer_timeout_; }
  [[nodiscard]] bool when_called() const noexcept { return when_called_; }

  // ---- any thread, no lock
  // In a forked child: nothing works, nothing may be touched (MEM-7).
  [[nodiscard]] bool is_inert() const noexcept { return inert_.load(std::memory_order_relaxed); }
  // Inert or closed.
  [[nodiscard]] const std::atomic<bool>& unusable() const noexcept { return unusable_; }
  // Throws Error(not_connected) for a closed context and in a forked child.
  void check_usable(const char* what) const;
  // With `when_called`: lets things move, since the program is in a call (PRG-6).
  void assist() noexcept {
    if (when_called_ && !is_inert()) service_->assist();
  }
  // Ends everything within 2 s; a second call does nothing (ERR-5).
  void shut_down() noexcept;
  // In the child, from the fork handler.
  void enter_child() noexcept;

  // ---- with the mutex held
  [[nodiscard]] LinkTable& links() noexcept { return links_; }
  [[nodiscard]] std::uint32_t new_endpoint_id();
  void add_endpoint(const std::shared_ptr<EndpointCore>& endpoint);
  [[nodiscard]] std::shared_ptr<EndpointCore> find_endpoint(std::uint32_t id) const;
  void remove_endpoint(EndpointCore& endpoint) noexcept;
  void add_listener(const std::shared_ptr<ListenerCore>& listener);
  void remove_listener(ListenerCore& listener) noexcept;
  void add_queue(const std::shared_ptr<QueueCore>& queue);
  // Connections that have not yet become an arrival or a link: bounded (CON-7).
  static constexpr std::size_t max_incoming = 1024;
  [[nodiscard]] std::set<std::shared_ptr<IncomingConnection>>& incoming() noexcept { return incoming_; }
  // Acts on what providers and the resolver reported.
  void handle_events() noexcept;

 private:
  void handle_event(Event& event);
  void end_all(std::unique_lock<std::mutex>& lock);
  void release_all() noexcept;

  const std::shared_ptr<ContextBell> bell_;  // outlives the provider's context
  std::unique_ptr<provider::Context> provider_;
  const std::string provider_name_;
  Attributes attributes_;
  std::vector<std::string> available_;
  const SocketAddress local_address_;
  const SocketAddress met_at_;
  const std::chrono::milliseconds peer_timeout_;
  const bool when_called_;
  wire::Id id_{};
  std::atomic<bool> inert_{false};
  std::atomic<bool> unusable_{false};
  std::atomic<bool> shutting_down_{false};
  bool provider_is_in_use_ = false;  // by endpoints it did not end: never destroyed

  std::shared_ptr<Inbox> inbox_;
  std::unique_ptr<Service> service_;
  LinkTable links_{*this};
  std::uint32_t last_endpoint_id_ = 0;
  std::map<std::uint32_t, std::shared_ptr<EndpointCore>> endpoints_;  // until each has ended
  std::set<std::shared_ptr<ListenerCore>> listeners_;
  std::set<std::shared_ptr<IncomingConnection>> incoming_;
  std::vector<std::weak_ptr<QueueCore>> queues_;
};

// What the public handles hold: the last one gone ends the context.
class ContextState {
 public:
  explicit ContextState(std::unique_ptr<ContextCore> core) noexcept : core_(std::move(core)) {}
  ~ContextState();
  ContextState(const ContextState&) = delete;
  ContextState& operator=(const ContextState&) = delete;

  [[nodiscard]] ContextCore& core() noexcept { return *core_; }

 private:
  std::unique_ptr<ContextCore> core_;
};

// The way in for tests: a context over a provider that is already open.
[[nodiscard]] std::shared_ptr<ContextState> open_context_with(std::shared_ptr<ContextBell> bell,
                                                              OpenedProvider opened,
                                                              const ContextOptions& options);

// What is kept for ever.
struct Kept {
  virtual ~Kept() = default;
  Kept* next = nullptr;
};
void keep_for_ever(Kept* kept) noexcept;

// Lets go without destroying: for what a forked child must not touch, and for what a provider still uses.
template <typename Pointer>
void leak(Pointer&& pointer) {
  struct Holder final : Kept {
    explicit Holder(std::remove_cvref_t<Pointer> value) : held(std::move(value)) {}
    std::remove_cvref_t<Pointer> held;
  };
  keep_for_ever(new Holder(std::forward<Pointer>(pointer)));
}

}  // namespace weft::core
