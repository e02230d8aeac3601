#include "bootstrap/dial_handshake.hpp"

#include <sys/epoll.h>

#include <utility>

#include "bootstrap/compatibility.hpp"
#include "bootstrap/socket.hpp"
#include "log.hpp"
#include "text.hpp"

namespace weft::core {

namespace {

const char* what_was_awaited(bool resolving, bool dialing, bool greeting, bool linking) {
  if (resolving) return "the name was not yet looked up";
  if (dialing) return "no address had answered";
  if (greeting) return "the peer had connected but not answered; it may not speak weft's protocol";
  if (linking) return "the control connection was not yet there";
  return "the peer's program had not answered";
}

}  // namespace

DialHandshake::DialHandshake(std::shared_ptr<EndpointCore> endpoint, HostPort target,
                             std::vector<std::byte> private_data)
    : context_(endpoint->context()),
      endpoint_(std::move(endpoint)),
      target_(std::move(target)),
      private_data_(std::move(private_data)) {}

DialHandshake::~DialHandshake() = default;

std::string DialHandshake::where() const { return quoted(target_.to_string()); }

void DialHandshake::start(std::chrono::milliseconds timeout) {
  deadline_ = context_.service().add_timer(timeout, [this, timeout] {
    fail(Status::timed_out, "connecting to " + where() + " took longer than its timeout of " +
                                std::to_string(timeout.count()) + " ms: " +
                                what_was_awaited(stage_ == Stage::resolving, stage_ == Stage::dialing,
                                                 stage_ == Stage::greeting, stage_ == Stage::linking));
  });
  const auto inbox = context_.inbox();
  resolve(target_, inbox, [inbox = inbox.get(), id = endpoint_->id()](Resolution resolution) {
    Event event;
    event.kind = Event::Kind::resolved;
    event.endpoint = id;
    event.resolution = std::move(resolution);
    inbox->put(std::move(event));
  });
}

void DialHandshake::on_resolved(Resolution resolution) {
  if (stage_ != Stage::resolving) return;
  if (resolution.addresses.empty()) {
    const Status status = resolution.status == Status::ok ? Status::unreachable : resolution.status;
    return fail(status, resolution.error);
  }
  stage_ = Stage::dialing;
  dial_ =
      std::make_shared<Dial>(context_.service(), std::move(resolution.addresses), context_.local_address(),
                             [this](Dial::Answer answer) { on_dialed(std::move(answer)); });
  dial_->start();
}

void DialHandshake::on_dialed(Dial::Answer answer) {
  const auto alive = shared_from_this();
  if (!answer.socket) {
    return fail(answer.status, "cannot connect to " + with_failures(target_.to_string(), answer.text));
  }
  stage_ = Stage::greeting;
  stream_ = FrameStream(std::move(answer.socket));
  endpoint_->set_addresses(stream_.socket());
  watch_peer(stream_.socket(), context_.peer_timeout(), false);
  try {
    watch_ = context_.service().watch(stream_.socket(), EPOLLIN, shared_from_this());
    send_hello();
  } catch (const Error& error) {
    fail(error.code(), error.what());
  }
}

void DialHandshake::send_hello() {
  wire::Preamble preamble;
  preamble.byte_order = wire::host_byte_order();
  preamble.kind = static_cast<std::uint8_t>(wire::Kind::endpoint);
  send(wire::encode(preamble));
  wire::Hello hello = introduction(context_);
  hello.endpoint = endpoint_->id();
  hello.limits = endpoint_->provider().limits();
  hello.blob = endpoint_->blob();
  hello.private_data = private_data_;
  send(wire::encode(hello));
}

void DialHandshake::send(const wire::Bytes& bytes) {
  stream_.send(bytes);
  context_.service().change(
      watch_, stream_.has_unsent() ? std::uint32_t{EPOLLIN | EPOLLOUT} : std::uint32_t{EPOLLIN});
}

void DialHandshake::on_ready(std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) send({});
  while (stage_ != Stage::over) {
    wire::FrameType type{};
    wire::Bytes payload;
    const auto result = stream_.read_frame(type, payload);
    if (result == FrameStream::Result::nothing) return;
    if (result != FrameStream::Result::done) {
      return fail(Status::protocol, "the handshake with " + where() + " failed: " + stream_.describe(result));
    }
    on_frame(type, payload);
  }
}

void DialHandshake::on_frame(wire::FrameType type, const wire::Bytes& payload) {
  if (type == wire::FrameType::refuse) {
    if (const auto refuse = wire::decode<wire::Refuse>(payload)) {
      return fail(refuse->status, where() + " refused the connection: " + one_line(refuse->text));
    }
  } else if (type == wire::FrameType::welcome && stage_ == Stage::greeting) {
    if (const auto welcome = wire::decode<wire::Welcome>(payload)) return on_welcome(*welcome);
  } else if (type == wire::FrameType::reject && stage_ == Stage::waiting) {
    if (auto reject = wire::decode<wire::Reject>(payload)) {
      endpoint_->set_private_data(std::move(reject->private_data));
      return fail(Status::rejected, "the program at " + where() + " rejected the connection");
    }
  } else if (type == wire::FrameType::accept && stage_ == Stage::waiting) {
    if (const auto accept = wire::decode<wire::Accept>(payload)) return on_accept(*accept);
  } else if (type == wire::FrameType::go && stage_ == Stage::confirming && payload.empty()) {
    return on_go();
  }
  fail(Status::protocol, "the handshake with " + where() + " failed: what it sends is not weft's protocol");
}

void DialHandshake::on_welcome(const wire::Welcome& welcome) {
  const auto mine = context_.provider().protocol();
  if (welcome.protocol < mine.lowest || welcome.protocol > mine.highest) {
    return fail(Status::protocol,
                where() + " chose a version of the provider's protocol that was not offered");
  }
  const auto address = SocketAddress::peer_of(stream_.socket());
  if (!address)
    return fail(Status::protocol, "the connection to " + where() + " was lost during the handshake");
  protocol_ = welcome.protocol;
  stage_ = Stage::linking;
  LinkTable::Asker asker;
  asker.alive = weak_from_this();
  asker.token = welcome.token;
  asker.to = *address;
  asker.answer = [this](LinkTable::Answer answer) { on_link(std::move(answer)); };
  context_.links().acquire(welcome.context, std::move(asker));
}

void DialHandshake::on_link(LinkTable::Answer answer) {
  if (stage_ != Stage::linking) return;
  if (answer.link == nullptr) {
    return fail(answer.status,
                "the control connection to " + where() + " could not be opened: " + answer.text);
  }
  stage_ = Stage::waiting;
  link_ = std::move(answer.link);
  link_->add(*this);
  send(wire::encode(wire::Linked{.token = link_->token()}));
}

void DialHandshake::on_accept(const wire::Accept& accept) {
  endpoint_->set_private_data(accept.private_data);
  stage_ = Stage::establishing;
  endpoint_->attach(link_, accept.endpoint);
  const bool keeps = context_.provider().keeps_connection();
  try {
    if (endpoint_->establish({.limits = accept.limits,
                              .blob = accept.blob,
                              .protocol = protocol_,
                              .initiator = true,
                              .connection = keeps ? stream_.socket() : -1})) {
      on_established();
    }
  } catch (const Error& error) {
    return fail(error.code(),
                std::string("the provider could not make the path to ") + where() + ": " + error.what());
  }
}

void DialHandshake::on_established() {
  if (stage_ != Stage::establishing) return;
  stage_ = Stage::confirming;
  send(wire::encode(wire::Ready{}));
}

void DialHandshake::on_go() {
  const auto alive = shared_from_this();
  const auto endpoint = endpoint_;
  context_.service().unwatch(watch_);
  unwatch_peer(stream_.socket());
  if (context_.provider().keeps_connection()) {
    (void)stream_.take_socket().release();  // the provider has the number and owns it with go_up
  }
  stop();
  endpoint->go_up();
}

void DialHandshake::on_link_lost(const std::string& why) {
  link_ = nullptr;
  fail(Status::protocol, "the control connection to " + where() + " was lost during the handshake: " + why);
}

void DialHandshake::on_fault(std::string_view what) noexcept {
  try {
    fail(Status::resource_limit, "the handshake with " + where() + " failed: " + std::string(what));
  } catch (const std::exception& error) {
    log(LogLevel::error, "a failed handshake could not be reported: {}", error.what());
  }
}

void DialHandshake::fail(Status status, const std::string& text) {
  if (stage_ == Stage::over) return;
  const auto alive = shared_from_this();
  const auto endpoint = endpoint_;
  stop();
  endpoint->fail_connect(status, text);
}

void DialHandshake::abandon(Status, const std::string&) noexcept {
  if (stage_ != Stage::over) stop();
}

void DialHandshake::stop() noexcept {
  stage_ = Stage::over;
  context_.service().cancel_timer(deadline_);
  if (dial_ != nullptr) dial_->cancel();
  context_.service().unwatch(watch_);
  stream_.close();
  if (link_ != nullptr) std::exchange(link_, nullptr)->remove(*this);
  endpoint_.reset();
}

}  // namespace weft::core
