#include "bootstrap/link.hpp"

#include <sys/epoll.h>

#include <algorithm>

#include "bootstrap/link_table.hpp"
#include "bootstrap/socket.hpp"
#include "log.hpp"
#include "objects/context_core.hpp"
#include "objects/endpoint_core.hpp"

namespace weft::core {

namespace {

constexpr std::size_t window = 16'384;
// A link without users: the side that dialed closes it; the other waits longer, so that a link about to be
// used again is not closed under its peer's hands.
constexpr std::chrono::seconds dialed_rest{1};
constexpr std::chrono::seconds accepted_rest{10};
// The kernel's keepalive counts in seconds; below this limit small probes of our own keep TCP's timeout busy.
constexpr std::chrono::milliseconds keepalive_suffices{4'000};
constexpr int frames_per_round = 64;

}  // namespace

Link::Link(LinkTable& table, FrameStream stream, const wire::Id& peer, const wire::Id& token, bool dialed)
    : table_(table), stream_(std::move(stream)), peer_(peer), token_(token), dialed_(dialed) {}

void Link::start() {
  ContextCore& context = table_.context();
  set_no_delay(stream_.socket());
  watch_peer(stream_.socket(), context.peer_timeout(), true);
  watch_ = context.service().watch(stream_.socket(), EPOLLIN, shared_from_this());
  if (dialed_) {
    wire::Preamble preamble;
    preamble.byte_order = wire::host_byte_order();
    preamble.kind = static_cast<std::uint8_t>(wire::Kind::link);
    send(wire::encode(preamble));
    send(wire::encode(wire::LinkHello{.context = context.id(), .token = token_}));
  } else {
    send(wire::encode(wire::LinkOk{}));
    up_ = true;
    rest_if_unused();
  }
  if (context.peer_timeout() < keepalive_suffices) probe();
}

void Link::close() noexcept {
  if (closed_) return;
  closed_ = true;
  up_ = false;
  Service& service = table_.context().service();
  service.unwatch(watch_);
  service.cancel_timer(probe_timer_);
  service.cancel_timer(rest_timer_);
  // What is held back says how endpoints ended; the socket's buffer takes it.
  for (const wire::Bytes& bytes : held_) stream_.send(bytes);
  held_.clear();
  stream_.close();
}

void Link::add(User& user) {
  users_.insert(&user);
  table_.context().service().cancel_timer(rest_timer_);
}

void Link::remove(User& user) noexcept {
  users_.erase(&user);
  if (closed_) return;
  try {
    rest_if_unused();
  } catch (const std::exception& error) {
    log(LogLevel::warning, "an unused control connection stays open: {}", error.what());
  }
}

void Link::rest_if_unused() {
  Service& service = table_.context().service();
  if (!users_.empty()) return;
  service.cancel_timer(rest_timer_);
  rest_timer_ = service.add_timer(dialed_ ? dialed_rest : accepted_rest, [this] {
    const auto alive = shared_from_this();
    close();
    table_.forget(*this);
  });
}

void Link::send_end(const wire::End& frame) {
  if (!closed_) send_or_hold(wire::encode(frame));
}

void Link::ring(std::uint32_t endpoint) {
  if (closed_ || held_rings_.contains(endpoint)) return;
  send_or_hold(wire::encode(wire::Ring{.endpoint = endpoint}));
  if (!held_.empty()) held_rings_.insert(endpoint);
}

void Link::send_or_hold(wire::Bytes bytes) {
  if (!held_.empty() || unanswered_ + bytes.size() > window) {
    held_.push_back(std::move(bytes));
    ask_for_answer();
    return;
  }
  send(bytes);
  if (unanswered_ > window / 2) ask_for_answer();
}

void Link::send(const wire::Bytes& bytes) {
  unanswered_ += bytes.size();
  stream_.send(bytes);
  update_interest();
}

void Link::ask_for_answer() {
  if (awaits_answer_ || !up_) return;
  awaits_answer_ = true;
  send(wire::encode(wire::Ping{}));
  unanswered_at_ask_ = unanswered_;
}

void Link::on_answer() {
  if (!awaits_answer_) return;  // a pong nobody asked for is harmless
  awaits_answer_ = false;
  unanswered_ -= std::exchange(unanswered_at_ask_, 0);
  while (!held_.empty() && unanswered_ + held_.front().size() <= window) {
    send(held_.front());
    held_.pop_front();
  }
  if (held_.empty()) {
    held_rings_.clear();
  } else {
    ask_for_answer();
  }
}

void Link::probe() {
  ask_for_answer();  // a missing answer proves nothing; the kernel's timeout for the bytes does
  probe_timer_ =
      table_.context().service().add_timer(table_.context().peer_timeout() / 8, [this] { probe(); });
}

void Link::update_interest() {
  if (watch_ == 0) return;
  table_.context().service().change(
      watch_, stream_.has_unsent() ? std::uint32_t{EPOLLIN | EPOLLOUT} : std::uint32_t{EPOLLIN});
}

void Link::on_ready(std::uint32_t events) {
  if (closed_) return;
  if ((events & EPOLLOUT) != 0) {
    stream_.flush();
    if (owes_answer_ && !stream_.has_unsent()) {
      owes_answer_ = false;
      send(wire::encode(wire::Pong{}));
    }
    update_interest();
  }
  for (int i = 0; i < frames_per_round && !closed_; ++i) {
    wire::FrameType type{};
    wire::Bytes payload;
    const auto result = stream_.read_frame(type, payload);
    if (result == FrameStream::Result::nothing) return;
    if (result != FrameStream::Result::done) return lose(stream_.describe(result));
    on_frame(type, payload);
  }
}

void Link::on_frame(wire::FrameType type, const wire::Bytes& payload) {
  const bool empty = payload.empty();
  if (dialed_ && !up_) {
    if (type != wire::FrameType::link_ok || !empty) return lose("the peer did not answer as weft does");
    up_ = true;
    rest_if_unused();
    return table_.on_up(*this);
  }
  if (type == wire::FrameType::end) {
    const auto frame = wire::decode<wire::End>(payload);
    if (!frame) return lose("the peer sent a malformed end of an endpoint");
    const auto endpoint = table_.context().find_endpoint(frame->endpoint);
    // An end may cross ours: the endpoint may be gone. And one link's peer has no say over others' endpoints.
    if (endpoint != nullptr && endpoint->link() == this) endpoint->on_peer_end(*frame);
  } else if (type == wire::FrameType::ring) {
    const auto frame = wire::decode<wire::Ring>(payload);
    if (!frame) return lose("the peer sent a malformed ring");
    const auto endpoint = table_.context().find_endpoint(frame->endpoint);
    if (endpoint != nullptr && endpoint->link() == this) endpoint->on_rung();
  } else if (type == wire::FrameType::ping && empty) {
    if (stream_.has_unsent()) {
      owes_answer_ = true;  // one is enough, however many the peer asks for without reading
    } else {
      stream_.send(wire::encode(wire::Pong{}));  // outside the window: it is an answer itself
      update_interest();
    }
  } else if (type == wire::FrameType::pong && empty) {
    on_answer();
  } else {
    lose("the peer sent a frame that does not belong on a control connection");
  }
}

void Link::on_fault(std::string_view what) noexcept {
  try {
    lose(std::string(what));
  } catch (const std::exception& error) {
    log(LogLevel::error, "a lost control connection could not be told to its endpoints: {}", error.what());
  }
}

void Link::lose(const std::string& why) {
  if (closed_) return;
  const auto alive = shared_from_this();
  const bool was_up = up_;
  if (!users_.empty()) log(LogLevel::debug, "control connection lost: {}", why);
  close();
  table_.forget(*this);
  if (!was_up && dialed_) table_.on_dial_failed(*this, Status::protocol, why);
  // One at a time: telling one may remove others.
  while (!users_.empty()) {
    User* const user = *users_.begin();
    users_.erase(users_.begin());
    user->on_link_lost(why);
  }
}

}  // namespace weft::core
