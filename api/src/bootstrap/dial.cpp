#include "bootstrap/dial.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>

#include "bootstrap/socket.hpp"
#include "text.hpp"

namespace weft::core {

namespace {

// How long an address may be silent before the next one is tried beside it (RFC 8305 recommends this).
constexpr std::chrono::milliseconds stagger{250};

// The error of a connection that was started; 0 when it is there.
int connection_error(int socket) noexcept {
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

// A socket that dials a port of its own range can meet itself; nobody listens then.
bool met_itself(int socket) noexcept {
  const auto local = SocketAddress::local_of(socket);
  const auto peer = SocketAddress::peer_of(socket);
  return local && peer && *local == *peer;
}

}  // namespace

class Dial::Attempt final : public Service::Handler {
 public:
  Attempt(Dial& dial, const SocketAddress& address) : dial_(&dial), address_(address) {}
  ~Attempt() override { close(); }

  // 0, or why it could not even be started.
  int start(const std::shared_ptr<Attempt>& self) {
    socket_ = make_tcp_socket(address_.family());
    if (!socket_) return errno;
    const SocketAddress& from = dial_->from_;
    if (from && from.family() == address_.family()) {
      set_option(socket_.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
      if (::bind(socket_.get(), from.data(), from.size()) != 0) return errno;
    }
    set_no_delay(socket_.get());
    if (::connect(socket_.get(), address_.data(), address_.size()) != 0 && errno != EINPROGRESS &&
        errno != EINTR) {
      return errno;
    }
    watch_ = dial_->service_.watch(socket_.get(), EPOLLOUT, self);
    return 0;
  }

  void on_ready(std::uint32_t) override {
    if (dial_ == nullptr) return;
    int error = connection_error(socket_.get());
    if (error == 0 && met_itself(socket_.get())) error = ECONNREFUSED;
    if (error == 0) {
      dial_->on_connected(*this);
    } else {
      dial_->on_failed(*this, error);
    }
  }
  void on_fault(std::string_view) noexcept override {
    if (dial_ != nullptr) dial_->on_failed(*this, ENOMEM);
  }

  void close() noexcept {
    if (dial_ != nullptr) dial_->service_.unwatch(watch_);
    dial_ = nullptr;
    socket_.reset();
  }
  [[nodiscard]] Descriptor take_socket() noexcept {
    if (dial_ != nullptr) dial_->service_.unwatch(watch_);
    return std::move(socket_);
  }
  [[nodiscard]] const SocketAddress& address() const noexcept { return address_; }

 private:
  Dial* dial_;
  SocketAddress address_;
  Descriptor socket_;
  Service::Watch watch_ = 0;
};

Dial::Dial(Service& service, std::vector<SocketAddress> addresses, SocketAddress from,
           std::function<void(Answer)> answer)
    : service_(service), addresses_(std::move(addresses)), from_(from), answer_(std::move(answer)) {}

void Dial::start() {
  // From a timer, so that the answer never comes from inside the caller's call.
  timer_ = service_.add_timer(std::chrono::nanoseconds::zero(), [this] { try_next(); });
}

void Dial::cancel() noexcept {
  service_.cancel_timer(timer_);
  for (const auto& attempt : attempts_) attempt->close();
  attempts_.clear();
  answer_ = nullptr;
}

void Dial::try_next() {
  const auto alive = shared_from_this();
  service_.cancel_timer(timer_);
  while (answer_ && next_ < addresses_.size()) {
    const SocketAddress address = addresses_[next_++];
    const bool other_family = from_ && from_.family() != address.family();
    const auto attempt = std::make_shared<Attempt>(*this, address);
    const int error = other_family ? EAFNOSUPPORT : attempt->start(attempt);
    if (error == 0) {
      attempts_.push_back(attempt);
      if (next_ < addresses_.size()) timer_ = service_.add_timer(stagger, [this] { try_next(); });
      return;
    }
    attempt->close();
    note_failure(address, error);
  }
  if (attempts_.empty()) give_answer({{}, first_status_, failures_});
}

void Dial::on_connected(Attempt& attempt) {
  const auto alive = shared_from_this();
  Answer answer;
  answer.socket = attempt.take_socket();
  give_answer(std::move(answer));
}

void Dial::on_failed(Attempt& attempt, int error) {
  const auto alive = shared_from_this();
  note_failure(attempt.address(), error);
  attempt.close();
  std::erase_if(attempts_, [&](const auto& other) { return other.get() == &attempt; });
  try_next();
}

void Dial::note_failure(const SocketAddress& address, int error) {
  const Status status = status_of_errno(error);
  // The outcome most worth telling: a refusal says more than a missing route of the other family.
  if (first_status_ == Status::ok || first_status_ == Status::unreachable) first_status_ = status;
  if (!failures_.empty()) failures_ += "; ";
  if (error == EAFNOSUPPORT) {
    failures_ += address.to_string() + ": the context's device has no address of this family";
  } else {
    failures_ += address.to_string() + ": " + errno_text(error);
    if (error == ECONNREFUSED) failures_ += " (nobody listens there)";
    if (error == EHOSTUNREACH) failures_ += " (no host answers there, or a router on the way says so)";
    if (error == ENETUNREACH) failures_ += " (this host has no route there)";
  }
}

void Dial::give_answer(Answer answer) {
  const auto call = std::exchange(answer_, nullptr);
  cancel();
  if (call) call(std::move(answer));
}

}  // namespace weft::core
