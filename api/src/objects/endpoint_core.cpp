#include "objects/endpoint_core.hpp"

#include "bootstrap/compatibility.hpp"
#include "bootstrap/signal_block.hpp"
#include "log.hpp"
#include "objects/opener.hpp"
#include "objects/queue_core.hpp"
#include "objects/receive_queue_core.hpp"

namespace weft::core {

namespace {

constexpr std::uint32_t max_depth = 65'536;

[[noreturn]] void refuse_option(const std::string& text) { throw Error(Status::invalid_argument, text); }

void check_depth(const char* name, std::uint32_t depth) {
  if (depth >= 1 && depth <= max_depth) return;
  refuse_option(std::string("EndpointOptions::") + name + " is " + std::to_string(depth) +
                "; it must be between 1 and " + std::to_string(max_depth));
}

std::shared_ptr<QueueCore> choose_queue(ContextCore& context, const char* name, const CompletionQueue& own,
                                        const CompletionQueue& both) {
  const auto& state = Opener::state(own ? own : both);
  if (state == nullptr) {
    refuse_option(std::string("EndpointOptions names no completion queue for its ") + name +
                  ": set `queue`, or both `send_completions` and `receive_completions`");
  }
  if (&state->core().context() != &context) {
    refuse_option(std::string("the completion queue for the endpoint's ") + name +
                  " belongs to another context");
  }
  return state->shared();
}

}  // namespace

std::shared_ptr<EndpointCore> EndpointCore::make(ContextCore& context, const EndpointOptions& options) {
  auto endpoint = std::make_shared<EndpointCore>(context);
  endpoint->prepare(options);
  return endpoint;
}

void EndpointCore::prepare(const EndpointOptions& options) {
  check_depth("send_depth", options.send_depth);
  if (options.private_data.size() > context_.attributes().max_private_data) {
    refuse_option("the private data is " + std::to_string(options.private_data.size()) + " bytes; at most " +
                  std::to_string(context_.attributes().max_private_data) + " can be carried");
  }
  if (options.timeout <= std::chrono::milliseconds::zero())
    refuse_option("EndpointOptions::timeout must be positive");
  if (const auto& shared = Opener::state(options.shared_receives); shared != nullptr) {
    if (&shared->context() != &context_) refuse_option("the shared receive queue belongs to another context");
    shared_receives_ = shared->shared();
    receive_queue_ = shared_receives_->queue();
  } else {
    check_depth("receive_depth", options.receive_depth);
    receive_queue_ = choose_queue(context_, "receives", options.receive_completions, options.queue);
  }
  send_queue_ = choose_queue(context_, "send side", options.send_completions, options.queue);
  user_value_ = options.user_value;

  provider::EndpointRequest request;
  {
    const std::lock_guard guard(context_.mutex());
    request.id = id_ = context_.new_endpoint_id();
  }
  request.user_value = user_value_;
  request.send_queue = &send_queue_->provider();
  request.receive_queue = &receive_queue_->provider();
  request.shared_receives = shared_receives_ != nullptr ? &shared_receives_->provider() : nullptr;
  request.send_depth = options.send_depth;
  request.receive_depth = options.receive_depth;
  request.max_inline = options.max_inline;
  request.events = this;
  {
    const SignalBlock block;
    provider_ = context_.provider().prepare_endpoint(request);
  }
  const std::lock_guard guard(context_.mutex());
  context_.add_endpoint(shared_from_this());
}

EndpointCore::~EndpointCore() = default;

void EndpointCore::set_addresses(int socket) {
  if (const auto local = SocketAddress::local_of(socket)) local_ = local->unmapped();
  if (const auto peer = SocketAddress::peer_of(socket)) peer_ = peer->unmapped();
}

wire::Bytes EndpointCore::blob() const { return checked_blob(*provider_, local_, peer_); }

void EndpointCore::attach(std::shared_ptr<Link> link, std::uint32_t peer_id) {
  link_ = std::move(link);
  link_->add(*this);
  peer_id_ = peer_id;
}

bool EndpointCore::establish(const Peer& peer) {
  provider::PeerParameters parameters;
  parameters.protocol = peer.protocol;
  parameters.path = {.local = local_.bytes(), .peer = peer_.bytes()};
  parameters.blob = peer.blob;
  parameters.limits = wire::negotiated(provider_->limits(), peer.limits);
  parameters.initiator = peer.initiator;
  parameters.peer_id = peer_id_;
  parameters.connection = peer.connection;
  return provider_->establish(parameters);
}

void EndpointCore::go_up() {
  if (phase_ != Phase::connecting) return;
  phase_ = Phase::up;
  was_up_ = true;
  connect_status_ = Status::ok;
  attempt_.reset();
  provider_->go_up();
  context_.service().notify();
  log(LogLevel::debug, "endpoint {} is up: {} to {}", id_, local_.to_string(), peer_.to_string());
  if (const auto frame = std::exchange(early_end_, std::nullopt)) on_peer_end(*frame);
}

void EndpointCore::failed(Status cause, std::uint64_t detail, std::int32_t native_code,
                          std::string_view text) noexcept {
  try {
    Event event;
    event.kind = Event::Kind::failed;
    event.endpoint = id_;
    event.cause = cause;
    event.number = detail;
    event.native_code = native_code;
    event.text = text.substr(0, wire::max_text);
    context_.inbox()->put(std::move(event));
  } catch (...) {
    log(LogLevel::error, "out of memory: endpoint {} has failed and cannot be ended before its peer ends it",
        id_);
  }
}

void EndpointCore::established() noexcept {
  try {
    Event event;
    event.kind = Event::Kind::established;
    event.endpoint = id_;
    context_.inbox()->put(std::move(event));
  } catch (...) {
    log(LogLevel::error, "out of memory: endpoint {} does not come up", id_);
  }
}

void EndpointCore::ring_peer() noexcept {
  if (rings_.exchange(true)) return;
  try {
    Event event;
    event.kind = Event::Kind::ring;
    event.endpoint = id_;
    context_.inbox()->put(std::move(event));
  } catch (...) {
    rings_.store(false);
    log(LogLevel::error, "out of memory: endpoint {} cannot wake its peer", id_);
  }
}

void EndpointCore::on_ring() {
  rings_.store(false);
  if (link_ != nullptr && peer_id_ != 0) link_->ring(peer_id_);
}

void EndpointCore::on_rung() {
  if (phase_ != Phase::ended) provider_->rung();
}

void EndpointCore::drained(std::uint64_t messages_sent) noexcept {
  try {
    Event event;
    event.kind = Event::Kind::drained;
    event.endpoint = id_;
    event.number = messages_sent;
    context_.inbox()->put(std::move(event));
  } catch (...) {
    log(LogLevel::error, "out of memory: endpoint {} ends by its deadline", id_);
  }
}

void EndpointCore::finished() noexcept {
  try {
    Event event;
    event.kind = Event::Kind::finished;
    event.endpoint = id_;
    context_.inbox()->put(std::move(event));
  } catch (...) {
    log(LogLevel::error, "out of memory: endpoint {} has ended and cannot be released", id_);
  }
}

}  // namespace weft::core
