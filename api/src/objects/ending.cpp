// How an endpoint ends: the first cause is kept, the peer is told, the provider carries it out (ERR-2, ERR-4,
// ERR-7). All with the context's mutex held.
#include <utility>

#include "log.hpp"
#include "objects/endpoint_core.hpp"
#include "objects/queue_core.hpp"

namespace weft::core {

namespace {

// How long a side whose path broke waits for the peer to say why (ERR-2).
constexpr std::chrono::seconds peers_word{1};

std::string text_of_peers_end(const wire::End& frame) {
  std::string text;
  switch (frame.cause) {
    case Status::disconnected:
      text = "the peer closed the connection";
      break;
    case Status::aborted:
      text = "the peer aborted the connection";
      break;
    case Status::truncated:
      text = "the peer's receive was shorter than the message";
      break;
    case Status::remote_access_error:
      text = "an access to remote memory was refused by its owner";
      break;
    case Status::protocol:
      text = "the peer found a breach of the protocol";
      break;
    default:
      text = "the peer lost the path to this side";
      break;
  }
  if (!frame.text.empty()) text += ": " + frame.text;
  return text;
}

// A status that connecting can have, for what a provider reports before the endpoint is up.
Status connect_outcome(Status cause) noexcept {
  return cause == Status::protocol || cause == Status::resource_limit ? cause : Status::unreachable;
}

}  // namespace

Status EndpointCore::cause() const noexcept {
  const bool over = phase_ == Phase::ended || (phase_ == Phase::ending && !waits_messages_);
  return over ? cause_ : Status::ok;
}

std::string EndpointCore::describe_end() const { return cause() == Status::ok ? std::string() : end_text_; }

void EndpointCore::cancel_timers() noexcept {
  context_.service().cancel_timer(close_timer_);
  context_.service().cancel_timer(word_timer_);
}

void EndpointCore::release_link() noexcept {
  if (link_ == nullptr) return;
  const auto link = std::exchange(link_, nullptr);
  link->remove(*this);
}

void EndpointCore::tell_peer(Status cause, std::uint64_t detail, std::int32_t native_code,
                             const std::string& text) {
  if (link_ == nullptr || peer_id_ == 0) return;
  wire::End frame;
  frame.endpoint = peer_id_;
  frame.cause = cause;
  frame.detail = detail;
  frame.native_code = native_code;
  frame.text = text;
  link_->send_end(frame);
}

void EndpointCore::tell_peer_after(std::uint64_t messages) {
  if (link_ == nullptr || peer_id_ == 0) return;
  wire::End frame;
  frame.endpoint = peer_id_;
  frame.cause = Status::disconnected;
  frame.after_messages = true;
  frame.messages = messages;
  link_->send_end(frame);
}

void EndpointCore::give_up_attempt(Status status, const std::string& text) noexcept {
  if (const auto attempt = std::exchange(attempt_, nullptr)) attempt->abandon(status, text);
}

void EndpointCore::end(provider::EndOrder order, std::string text) {
  if (phase_ == Phase::ended) return;
  if (phase_ == Phase::ending) {
    // Only the wait for the last messages can be cut short; the cause stays the first one.
    if (!waits_messages_ || order.after_messages) return;
    waits_messages_ = false;
    order.cause = cause_;
    provider_->end(order);
    context_.service().notify();
    return;
  }
  phase_ = Phase::ending;
  cause_ = order.cause;
  end_text_ = std::move(text);
  waits_messages_ = order.after_messages;
  cancel_timers();
  log(LogLevel::debug, "endpoint {} ends, {}: {}", id_, to_string(cause_), end_text_);
  provider_->end(order);
  context_.service().notify();
}

void EndpointCore::fail_connect(Status status, const std::string& text, bool reported) {
  if (phase_ != Phase::connecting) return;
  const auto alive = shared_from_this();
  attempt_.reset();
  tell_peer(Status::aborted, 0, 0, text);
  phase_ = Phase::ending;
  cause_ = connect_status_ = status;
  end_text_ = text;
  cancel_timers();
  log(LogLevel::debug, "endpoint {} did not come up, {}: {}", id_, to_string(status), text);
  if (reported && !silenced_) {
    Completion completion;
    completion.operation = Operation::connect;
    completion.status = status;
    completion.endpoint_id = id_;
    completion.user_value = user_value_;
    receive_queue_->report(completion, this);
  }
  provider_->end({.cause = Status::local_close});
  context_.service().notify();
}

void EndpointCore::close(std::chrono::nanoseconds deadline) {
  switch (phase_) {
    case Phase::connecting: {
      const std::string text = "closed before the connection was up";
      give_up_attempt(Status::cancelled, text);
      fail_connect(Status::cancelled, text);
      return;
    }
    case Phase::up:
      if (deadline <= std::chrono::nanoseconds::zero())
        return abort("closed with no time to deliver what was posted");
      phase_ = Phase::draining;
      break;
    case Phase::draining: {
      if (deadline <= std::chrono::nanoseconds::zero())
        return abort("closed with no time to deliver what was posted");
      const auto when = after(Service::Clock::now(), deadline);
      if (close_timer_ && close_timer_.when <= when) return;
      break;
    }
    case Phase::ending:
      // The peer closed and its last messages are not yet received: this side does not want them any more.
      return end({.cause = Status::local_close}, {});
    case Phase::ended:
      return;
  }
  context_.service().cancel_timer(close_timer_);
  close_timer_ = context_.service().add_timer(deadline, [this] {
    const std::string text = "its deadline to close passed before everything was delivered";
    tell_peer(Status::aborted, 0, 0, text);
    end({.cause = Status::local_close},
        "closed by this side; the deadline passed before everything was delivered");
  });
  if (!path_broken_) provider_->drain();
}

void EndpointCore::abort(const std::string& why) {
  if (phase_ == Phase::connecting) {
    give_up_attempt(Status::cancelled, why);
    fail_connect(Status::cancelled, why);
    return;
  }
  if (phase_ == Phase::up || phase_ == Phase::draining) tell_peer(Status::aborted, 0, 0, {});
  end({.cause = Status::local_close}, why);
}

void EndpointCore::silence() noexcept {
  silenced_ = true;
  provider_->silence();
  receive_queue_->take_back(this);
}

void EndpointCore::on_peer_end(const wire::End& frame) {
  if (phase_ == Phase::connecting) {
    early_end_ = frame;  // it overtook the handshake's last frame, which comes on another connection
    return;
  }
  provider::EndOrder order;
  order.cause = frame.cause;
  order.after_messages = frame.after_messages;
  order.messages = frame.messages;
  order.detail = frame.detail;
  order.native_code = frame.native_code;
  std::string text = text_of_peers_end(frame);
  const bool both_closed = frame.cause == Status::disconnected || frame.cause == Status::aborted;
  if (phase_ == Phase::draining && both_closed) {
    order = {.cause = Status::local_close};
    text = "closed by this side, and meanwhile by the peer";
  }
  end(order, std::move(text));
}

void EndpointCore::on_link_lost(const std::string& why) {
  link_ = nullptr;
  const std::string text = "the peer is gone: on the control connection, " + why;
  switch (phase_) {
    case Phase::connecting:
      give_up_attempt(Status::protocol, text);
      fail_connect(Status::protocol, text);
      return;
    case Phase::up:
    case Phase::draining:
      end({.cause = Status::peer_lost}, text);
      return;
    case Phase::ending:  // everything the peer sent before its end is here already
    case Phase::ended:
      return;
  }
}

void EndpointCore::on_failed(Status cause, std::uint64_t detail, std::int32_t native_code,
                             const std::string& text) {
  provider::EndOrder order;
  order.cause = cause;
  order.detail = detail;
  order.native_code = native_code;
  switch (phase_) {
    case Phase::connecting:
      give_up_attempt(Status::cancelled, text);
      fail_connect(connect_outcome(cause), text);
      return;
    case Phase::up:
    case Phase::draining:
      if (cause != Status::peer_lost) {
        tell_peer(cause, detail, native_code, text);
        end(order, text);
      } else if (!path_broken_) {
        path_broken_ = true;
        word_timer_ = context_.service().add_timer(peers_word, [this, order, text] {
          tell_peer(Status::peer_lost, order.detail, order.native_code, text);
          end(order, text);
        });
      }
      return;
    case Phase::ending:
      // The peer closed, and what it sent is here already: that its path is gone now changes nothing.
      if (cause != Status::peer_lost) end(order, text);
      return;
    case Phase::ended:
      return;
  }
}

void EndpointCore::on_drained(std::uint64_t messages_sent) {
  if (phase_ != Phase::draining || path_broken_) return;
  tell_peer_after(messages_sent);
  end({.cause = Status::local_close}, "closed by this side");
}

void EndpointCore::on_finished() {
  if (phase_ != Phase::ending) {
    log(LogLevel::warning, "the provider finished endpoint {} without being asked to; ignored", id_);
    return;
  }
  phase_ = Phase::ended;
  waits_messages_ = false;
  cancel_timers();
  release_link();
  context_.service().notify();
  context_.remove_endpoint(*this);
}

}  // namespace weft::core
