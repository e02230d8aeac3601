#include "bootstrap/incoming_connection.hpp"

#include <sys/epoll.h>

#include "bootstrap/compatibility.hpp"
#include "bootstrap/link_table.hpp"
#include "bootstrap/listener_core.hpp"
#include "bootstrap/socket.hpp"
#include "log.hpp"
#include "objects/context_core.hpp"

namespace weft::core {

namespace {

constexpr std::chrono::seconds time_to_introduce{10};

}  // namespace

IncomingConnection::IncomingConnection(ContextCore& context, std::weak_ptr<ListenerCore> listener,
                                       Descriptor socket)
    : context_(context), listener_(std::move(listener)), stream_(std::move(socket)) {}

bool IncomingConnection::is_from(const ListenerCore& listener) const noexcept {
  return listener_.lock().get() == &listener;
}

std::string IncomingConnection::peer() const {
  const auto address = SocketAddress::peer_of(stream_.socket());
  return address ? address->unmapped().to_string() : std::string("a peer that is gone");
}

void IncomingConnection::start() {
  set_no_delay(stream_.socket());
  watch_ = context_.service().watch(stream_.socket(), EPOLLIN, shared_from_this());
  deadline_ = context_.service().add_timer(time_to_introduce, [this] {
    const auto alive = shared_from_this();
    drop("it did not finish its introduction within 10 s");
  });
}

void IncomingConnection::on_ready(std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) stream_.flush();
  while (stage_ != Stage::over) {
    FrameStream::Result result{};
    if (stage_ == Stage::preamble) {
      wire::Preamble preamble;
      result = stream_.read_preamble(preamble);
      if (result == FrameStream::Result::done) on_preamble(preamble);
    } else {
      wire::FrameType type{};
      wire::Bytes payload;
      result = stream_.read_frame(type, payload);
      if (result == FrameStream::Result::done) on_frame(type, payload);
    }
    if (result == FrameStream::Result::nothing) return;
    if (result != FrameStream::Result::done) return drop(stream_.describe(result));
  }
}

void IncomingConnection::on_preamble(const wire::Preamble& preamble) {
  if (const auto conflict = preamble_conflict(preamble)) {
    log(LogLevel::warning, "refused {}: {}", peer(), *conflict);
    return refuse(Status::incompatible, *conflict);
  }
  if (preamble.kind != static_cast<std::uint8_t>(wire::Kind::endpoint) &&
      preamble.kind != static_cast<std::uint8_t>(wire::Kind::link)) {
    return drop("its first bytes are not weft's");
  }
  preamble_ = preamble;
  stage_ = Stage::first_frame;
}

void IncomingConnection::on_frame(wire::FrameType type, const wire::Bytes& payload) {
  const bool for_link = preamble_.kind == static_cast<std::uint8_t>(wire::Kind::link);
  if (stage_ == Stage::first_frame && for_link && type == wire::FrameType::link) {
    if (const auto hello = wire::decode<wire::LinkHello>(payload)) return on_link(*hello);
  } else if (stage_ == Stage::first_frame && !for_link && type == wire::FrameType::hello) {
    if (auto hello = wire::decode<wire::Hello>(payload)) return on_hello(std::move(*hello));
  } else if (stage_ == Stage::linking && type == wire::FrameType::linked) {
    if (const auto linked = wire::decode<wire::Linked>(payload)) return on_linked(*linked);
  }
  drop("what it sends is not weft's protocol");
}

void IncomingConnection::on_hello(wire::Hello hello) {
  if (listener_.expired()) return refuse(Status::refused, "the listener is closed");
  const wire::Hello mine = introduction(context_);
  if (const auto problem = conflict(mine, hello)) {
    log(LogLevel::warning, "refused {}: {}", peer(), *problem);
    return refuse(Status::incompatible, *problem);
  }
  hello_ = std::move(hello);
  token_ = context_.links().issue(hello_.context);
  stage_ = Stage::linking;
  wire::Welcome welcome;
  welcome.version = common_version(preamble_);
  welcome.protocol = protocol_ = common_protocol(mine, hello_);
  welcome.context = context_.id();
  welcome.token = token_;
  stream_.send(wire::encode(welcome));
}

void IncomingConnection::on_link(const wire::LinkHello& hello) {
  context_.service().unwatch(watch_);
  const auto alive = shared_from_this();
  if (!context_.links().adopt(stream_, hello)) {
    drop("it opened a control connection without having been asked to");
  }
  stop();
}

void IncomingConnection::on_linked(const wire::Linked& linked) {
  const auto listener = listener_.lock();
  if (listener == nullptr || listener->is_closed()) return refuse(Status::refused, "the listener is closed");
  auto link = context_.links().find_accepted(linked.token, hello_.context);
  if (link == nullptr) return refuse(Status::protocol, "the control connection it names does not exist");
  if (listener->is_full()) {
    log(LogLevel::warning, "refused {}: {} arrivals wait for the program at {}", peer(), listener->backlog(),
        listener->address().to_string());
    return refuse(Status::resource_limit, "the listener's backlog of " + std::to_string(listener->backlog()) +
                                              " arrivals is full; try again");
  }
  const auto alive = shared_from_this();
  context_.service().unwatch(watch_);
  FrameStream stream = std::move(stream_);
  stop();
  listener->arrive(std::move(stream), std::move(hello_), protocol_, std::move(link));
}

void IncomingConnection::refuse(Status status, const std::string& text) noexcept {
  const auto alive = shared_from_this();
  try {
    stream_.send(wire::encode(wire::Refuse{.status = status, .text = text}));
  } catch (const std::exception& error) {
    log(LogLevel::warning, "a peer is refused without a reason: {}", error.what());
  }
  stop();
}

void IncomingConnection::drop(const std::string& why) noexcept {
  if (stage_ == Stage::over) return;
  if (logs(LogLevel::debug)) log(LogLevel::debug, "dropped the connection from {}: {}", peer(), why);
  const auto alive = shared_from_this();
  stop();
}

void IncomingConnection::on_fault(std::string_view what) noexcept {
  log(LogLevel::warning, "dropped a new connection: {}", what);
  const auto alive = shared_from_this();
  stop();
}

void IncomingConnection::stop() noexcept {
  stage_ = Stage::over;
  context_.service().cancel_timer(deadline_);
  context_.service().unwatch(watch_);
  context_.links().revoke(token_);
  stream_.close();
  context_.incoming().erase(shared_from_this());
}

}  // namespace weft::core
