#include "objects/context_core.hpp"

#include <algorithm>
#include <utility>

#include "bootstrap/incoming_connection.hpp"
#include "bootstrap/listener_core.hpp"
#include "bootstrap/socket.hpp"
#include "host.hpp"
#include "log.hpp"
#include "objects/endpoint_core.hpp"
#include "objects/fork.hpp"
#include "objects/queue_core.hpp"
#include "plugin_loader.hpp"

namespace weft::core {

namespace {

// ERR-5: an endpoint's deadline to deliver what was accepted, and what a whole context may take.
constexpr std::chrono::milliseconds graceful{1'000};
constexpr std::chrono::milliseconds patience{1'900};

std::vector<std::string> plugin_names() {
  std::vector<std::string> names;
  for (const Plugin& plugin : PluginLoader::instance().find()) names.push_back(plugin.name);
  return names;
}

// What the provider says of its device's address; as it was asked for when it was, since that has its scope.
SocketAddress place_of(const provider::Context& context, const SocketAddress& asked_for) {
  const Attributes& attributes = context.attributes();
  if (!attributes.met_there_only) return {};
  if (asked_for) return asked_for;
  return SocketAddress::from_numeric(attributes.local_address, 0).value_or(SocketAddress());
}

}  // namespace

ContextCore::ContextCore(std::shared_ptr<ContextBell> bell, OpenedProvider opened,
                         const ContextOptions& options)
    : bell_(std::move(bell)),
      provider_(std::move(opened.context)),
      provider_name_(std::move(opened.name)),
      attributes_(provider_->attributes()),
      available_(plugin_names()),
      local_address_(opened.local_address),
      met_at_(place_of(*provider_, opened.local_address)),
      peer_timeout_(opened.peer_timeout),
      when_called_(options.progress_mode == ProgressMode::when_called),
      inbox_(std::make_shared<Inbox>(bell_->waker())) {
  attributes_.provider = provider_name_;  // decorators in front, which the provider does not know of
  if (attributes_.provider_version.empty()) attributes_.provider_version = opened.version;
  if (attributes_.local_address.empty()) attributes_.local_address = opened.local_address_text;
  attributes_.max_private_data = wire::max_private_data;
  attributes_.thread_mode = options.thread_mode;
  attributes_.progress_mode = options.progress_mode;
  raise_descriptor_limit();
  ProviderHost::fill_random(id_);
  service_ = std::make_unique<Service>(*provider_, bell_, [this] { handle_events(); });
  register_for_fork(*this);
  try {
    if (!when_called_) service_->start();
  } catch (...) {
    unregister_for_fork(*this);
    throw;
  }
}

ContextCore::~ContextCore() {
  unregister_for_fork(*this);
  if (provider_is_in_use_) leak(std::move(provider_));
}

void ContextCore::check_usable(const char* what) const {
  if (is_inert()) {
    throw Error(Status::not_connected,
                std::string("cannot ") + what +
                    ": this is a forked child, where the parent's weft objects do nothing; "
                    "open a context of its own after fork()");
  }
  if (shutting_down_)
    throw Error(Status::not_connected, std::string("cannot ") + what + ": the context is closed");
}

std::uint32_t ContextCore::new_endpoint_id() {
  do {
    ++last_endpoint_id_;
  } while (last_endpoint_id_ == 0 || endpoints_.contains(last_endpoint_id_));
  return last_endpoint_id_;
}

void ContextCore::add_endpoint(const std::shared_ptr<EndpointCore>& endpoint) {
  check_usable("make an endpoint");  // the context may have been closed since the call began
  endpoints_.emplace(endpoint->id(), endpoint);
}

std::shared_ptr<EndpointCore> ContextCore::find_endpoint(std::uint32_t id) const {
  const auto found = endpoints_.find(id);
  return found == endpoints_.end() ? nullptr : found->second;
}

void ContextCore::remove_endpoint(EndpointCore& endpoint) noexcept { endpoints_.erase(endpoint.id()); }

void ContextCore::add_listener(const std::shared_ptr<ListenerCore>& listener) {
  check_usable("listen");
  listeners_.insert(listener);
}

void ContextCore::remove_listener(ListenerCore& listener) noexcept {
  listeners_.erase(listener.shared_from_this());
}

void ContextCore::add_queue(const std::shared_ptr<QueueCore>& queue) {
  std::erase_if(queues_, [](const auto& known) { return known.expired(); });
  queues_.push_back(queue);
}

void ContextCore::handle_events() noexcept {
  // What is handled may report more, at once or from other threads.
  for (auto events = inbox_->take(); !events.empty(); events = inbox_->take()) {
    for (Event& event : events) {
      try {
        handle_event(event);
      } catch (const std::exception& error) {
        log(LogLevel::error, "an event of endpoint {} could not be handled: {}", event.endpoint,
            error.what());
      }
    }
  }
}

void ContextCore::handle_event(Event& event) {
  const auto endpoint = find_endpoint(event.endpoint);
  if (endpoint == nullptr) return;
  switch (event.kind) {
    case Event::Kind::failed:
      return endpoint->on_failed(event.cause, event.number, event.native_code, event.text);
    case Event::Kind::drained:
      return endpoint->on_drained(event.number);
    case Event::Kind::established:
      return endpoint->on_established();
    case Event::Kind::ring:
      return endpoint->on_ring();
    case Event::Kind::finished:
      return endpoint->on_finished();
    case Event::Kind::resolved:
      return endpoint->on_resolved(std::move(event.resolution));
  }
}

void ContextCore::shut_down() noexcept {
  if (is_inert() || shutting_down_.exchange(true)) return;
  try {
    std::unique_lock lock(mutex());
    end_all(lock);
  } catch (const std::exception& error) {
    log(LogLevel::error, "closing a context did not go as it should: {}", error.what());
  }
  service_->stop();
  release_all();
}

void ContextCore::end_all(std::unique_lock<std::mutex>& lock) {
  for (const auto& listener : std::set(listeners_)) listener->close();
  for (const auto& connection : std::set(incoming_))
    connection->refuse(Status::refused, "the listener was closed");
  const auto start = Service::Clock::now();
  const auto all_ended = [this] {
    handle_events();
    return endpoints_.empty();
  };
  const auto each = [this](auto&& act) {
    for (const auto& [id, endpoint] : std::map(endpoints_)) act(*endpoint);
  };
  each([](EndpointCore& endpoint) { endpoint.close(graceful); });
  if (service_->wait_until(lock, start + graceful + std::chrono::milliseconds(200), all_ended)) return;
  each([](EndpointCore& endpoint) { endpoint.abort("its context was closed"); });
  if (service_->wait_until(lock, start + patience, all_ended)) return;
  log(LogLevel::error, "the provider {} did not end {} endpoints in time; they are left behind",
      provider_name_, endpoints_.size());
}

void ContextCore::release_all() noexcept {
  std::map<std::uint32_t, std::shared_ptr<EndpointCore>> left;
  std::vector<std::weak_ptr<QueueCore>> queues;
  {
    const std::lock_guard guard(mutex());
    links_.close_all();
    left = std::exchange(endpoints_, {});
    queues = std::exchange(queues_, {});
  }
  unusable_.store(true, std::memory_order_release);
  for (const auto& known : queues) {
    if (const auto queue = known.lock()) queue->close();
  }
  if (left.empty()) return;
  // A provider that does not let go of an endpoint may still use it: nothing of it can be destroyed.
  for (auto& [id, endpoint] : left) leak(std::move(endpoint));
  provider_is_in_use_ = true;
}

void ContextCore::enter_child() noexcept {
  if (inert_.exchange(true)) return;  // a child's child
  unusable_.store(true, std::memory_order_relaxed);
  provider_->enter_child();
}

void keep_for_ever(Kept* kept) noexcept {
  static std::atomic<Kept*> first{nullptr};
  kept->next = first.load();
  while (!first.compare_exchange_weak(kept->next, kept)) {
  }
}

ContextState::~ContextState() {
  if (core_->is_inert()) {
    leak(std::move(core_));
  } else {
    core_->shut_down();
  }
}

std::shared_ptr<ContextState> open_context_with(std::shared_ptr<ContextBell> bell, OpenedProvider opened,
                                                const ContextOptions& options) {
  return std::make_shared<ContextState>(
      std::make_unique<ContextCore>(std::move(bell), std::move(opened), options));
}

}  // namespace weft::core
