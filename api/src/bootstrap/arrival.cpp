#include "bootstrap/arrival.hpp"

#include <sys/epoll.h>

#include <utility>

#include "bootstrap/compatibility.hpp"
#include "bootstrap/listener_core.hpp"
#include "bootstrap/socket.hpp"
#include "log.hpp"

namespace weft::core {

Arrival::Arrival(ContextCore& context, std::weak_ptr<ListenerCore> listener, FrameStream stream,
                 wire::Hello hello, std::uint16_t protocol, std::shared_ptr<Link> link)
    : context_(context),
      listener_(std::move(listener)),
      stream_(std::move(stream)),
      hello_(std::move(hello)),
      protocol_(protocol),
      link_(std::move(link)) {
  if (const auto local = SocketAddress::local_of(stream_.socket())) local_ = local->unmapped();
  if (const auto peer = SocketAddress::peer_of(stream_.socket())) peer_ = peer->unmapped();
}

Arrival::~Arrival() = default;

void Arrival::start() {
  // Reading goes on while the program takes its time: that is how the peer's end is noticed.
  watch_ = context_.service().watch(stream_.socket(), EPOLLIN, shared_from_this());
  link_->add(*this);
}

void Arrival::prepare(std::shared_ptr<EndpointCore> endpoint) {
  endpoint_ = std::move(endpoint);
  endpoint_->set_addresses(stream_.socket());
  endpoint_->begin(shared_from_this());
}

void Arrival::accept(std::span<const std::byte> private_data, std::chrono::milliseconds timeout) {
  const auto alive = shared_from_this();
  stage_ = Stage::accepting;
  endpoint_->attach(link_, hello_.endpoint);  // the dialer's provider may ring before it says ready
  deadline_ = context_.service().add_timer(timeout, [this, timeout] {
    fail(Status::timed_out, "the peer " + peer_.to_string() +
                                " was accepted and did not finish the handshake within " +
                                std::to_string(timeout.count()) + " ms");
  });
  try {
    wire::Accept accept;
    accept.endpoint = endpoint_->id();
    accept.limits = endpoint_->provider().limits();
    accept.blob = endpoint_->blob();
    accept.private_data.assign(private_data.begin(), private_data.end());
    send(wire::encode(accept));
  } catch (const Error& error) {
    fail(error.code(), error.what());
  }
}

void Arrival::reject(std::span<const std::byte> private_data) noexcept {
  if (stage_ != Stage::offered) return;
  const auto alive = shared_from_this();
  try {
    wire::Reject reject;
    reject.private_data.assign(private_data.begin(), private_data.end());
    send(wire::encode(reject));
  } catch (const std::exception& error) {
    log(LogLevel::warning, "a peer is rejected without a word: {}", error.what());
  }
  const auto endpoint = endpoint_;
  stop("it was rejected");
  if (endpoint != nullptr) endpoint->fail_connect(Status::cancelled, "the request was rejected by this side");
}

void Arrival::send(const wire::Bytes& bytes) {
  stream_.send(bytes);
  context_.service().change(
      watch_, stream_.has_unsent() ? std::uint32_t{EPOLLIN | EPOLLOUT} : std::uint32_t{EPOLLIN});
}

void Arrival::on_ready(std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) send({});
  if (stage_ == Stage::confirming) {
    // Nothing is read any more: what comes now is the provider's.
    if (!stream_.has_unsent()) finish();
    return;
  }
  while (stage_ == Stage::offered || stage_ == Stage::accepting || stage_ == Stage::establishing) {
    wire::FrameType type{};
    wire::Bytes payload;
    const auto result = stream_.read_frame(type, payload);
    if (result == FrameStream::Result::nothing) return;
    if (result != FrameStream::Result::done) {
      return fail(Status::cancelled,
                  "the peer " + peer_.to_string() + " gave up: " + stream_.describe(result));
    }
    if (type == wire::FrameType::ready && payload.empty() && stage_ == Stage::accepting) {
      on_ready_frame();
    } else if (const auto refuse = wire::decode<wire::Refuse>(payload);
               type == wire::FrameType::refuse && refuse) {
      fail(refuse->status, "the peer " + peer_.to_string() + " gave up: " + refuse->text);
    } else {
      fail(Status::protocol, "what the peer " + peer_.to_string() + " sends is not weft's protocol");
    }
  }
}

void Arrival::on_ready_frame() {
  const bool keeps = context_.provider().keeps_connection();
  try {
    stage_ = Stage::establishing;
    if (endpoint_->establish({.limits = hello_.limits,
                              .blob = hello_.blob,
                              .protocol = protocol_,
                              .initiator = false,
                              .connection = keeps ? stream_.socket() : -1})) {
      on_established();
    }
  } catch (const Error& error) {
    return fail(error.code(),
                "the provider could not make the path to " + peer_.to_string() + ": " + error.what());
  }
}

void Arrival::on_established() {
  if (stage_ != Stage::establishing) return;
  stage_ = Stage::confirming;
  send(wire::encode(wire::Go{}));
  if (!stream_.has_unsent()) finish();
}

void Arrival::finish() {
  const auto alive = shared_from_this();
  const auto endpoint = endpoint_;
  context_.service().unwatch(watch_);
  unwatch_peer(stream_.socket());
  if (context_.provider().keeps_connection()) {
    (void)stream_.take_socket().release();  // the provider has the number and owns it with go_up
  }
  stop("it is connected");
  endpoint->go_up();
}

void Arrival::on_link_lost(const std::string& why) {
  link_ = nullptr;
  fail(Status::cancelled, "the control connection from " + peer_.to_string() + " was lost: " + why);
}

void Arrival::on_fault(std::string_view what) noexcept {
  try {
    fail(Status::resource_limit, "the handshake with " + peer_.to_string() + " failed: " + std::string(what));
  } catch (const std::exception& error) {
    log(LogLevel::error, "a failed handshake could not be reported: {}", error.what());
  }
}

void Arrival::fail(Status status, const std::string& text) {
  if (stage_ == Stage::over) return;
  const auto alive = shared_from_this();
  const auto endpoint = endpoint_;
  if (status != Status::cancelled) send(wire::encode(wire::Refuse{.status = status, .text = text}));
  stop(text);
  if (endpoint != nullptr) {
    endpoint->fail_connect(status, text);
  } else {
    log(LogLevel::debug, "an arrival was dropped: {}", text);
  }
}

void Arrival::abandon(Status status, const std::string& text) noexcept {
  if (stage_ == Stage::over) return;
  const auto alive = shared_from_this();
  try {
    if (stage_ == Stage::offered) {
      send(wire::encode(wire::Reject{}));
    } else {
      send(wire::encode(wire::Refuse{.status = status, .text = text}));
    }
  } catch (const std::exception& error) {
    log(LogLevel::warning, "a peer is let down without a word: {}", error.what());
  }
  stop("its endpoint was closed before it was accepted");
}

void Arrival::stop(const std::string& why) noexcept {
  stage_ = Stage::over;
  why_ = why;
  context_.service().cancel_timer(deadline_);
  context_.service().unwatch(watch_);
  stream_.close();
  if (link_ != nullptr) std::exchange(link_, nullptr)->remove(*this);
  if (const auto listener = listener_.lock()) listener->withdraw(*this);
  endpoint_.reset();
}

}  // namespace weft::core
