#include "bootstrap/listener_core.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <future>

#include "bootstrap/arrival.hpp"
#include "bootstrap/incoming_connection.hpp"
#include "bootstrap/socket.hpp"
#include "log.hpp"
#include "objects/context_core.hpp"
#include "objects/opener.hpp"
#include "objects/queue_core.hpp"
#include "resolver.hpp"
#include "text.hpp"

namespace weft::core {

namespace {

constexpr std::uint32_t max_backlog = 65'536;
constexpr int accepts_per_round = 64;
constexpr std::chrono::milliseconds pause_time{100};

Descriptor make_spare() {
  return Descriptor::from([] { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); });
}

// Listening, unlike connecting, may wait for the resolver.
Resolution resolve_now(const HostPort& target) {
  const auto mailbox = std::make_shared<std::promise<Resolution>>();
  auto answer = mailbox->get_future();
  resolve(target, mailbox,
          [box = mailbox.get()](Resolution resolution) { box->set_value(std::move(resolution)); });
  return answer.get();
}

}  // namespace

ListenerCore::ListenerCore(ContextCore& context, std::shared_ptr<QueueCore> queue, std::uint64_t user_value,
                           std::uint32_t backlog) noexcept
    : context_(context), queue_(std::move(queue)), user_value_(user_value), backlog_(backlog) {}

ListenerCore::~ListenerCore() = default;

std::shared_ptr<ListenerCore> ListenerCore::make(ContextCore& context, std::string_view address,
                                                 const ListenOptions& options) {
  const auto& state = Opener::state(options.queue);
  if (state == nullptr) {
    throw Error(Status::invalid_argument,
                "ListenOptions::queue is not set: arrivals need a completion queue");
  }
  if (&state->core().context() != &context) {
    throw Error(Status::invalid_argument, "ListenOptions::queue belongs to another context");
  }
  if (options.backlog < 1 || options.backlog > max_backlog) {
    throw Error(Status::invalid_argument, "ListenOptions::backlog is " + std::to_string(options.backlog) +
                                              "; it must be between 1 and " + std::to_string(max_backlog));
  }
  auto listener =
      std::make_shared<ListenerCore>(context, state->shared(), options.user_value, options.backlog);
  listener->bind(address);
  return listener;
}

void ListenerCore::bind(std::string_view text) {
  const HostPort target = parse_host_port(text);
  std::string failures;
  if (target.host.empty()) {
    if (try_bind(SocketAddress::wildcard(AF_INET6, target.port), failures)) return;
    if (try_bind(SocketAddress::wildcard(AF_INET, target.port), failures)) return;
  } else {
    const Resolution found = resolve_now(target);
    if (found.addresses.empty())
      throw Error(found.status, "cannot listen at " + quoted(text) + ": " + found.error);
    for (const SocketAddress& address : found.addresses) {
      if (try_bind(address, failures)) return;
    }
  }
  const Status status = errno == EMFILE || errno == ENFILE ? Status::resource_limit : Status::unavailable;
  throw Error(status, "cannot listen at " + with_failures(text, failures));
}

bool ListenerCore::try_bind(const SocketAddress& address, std::string& failures) {
  const SocketAddress& place = context_.met_at();
  if (place && !address.is_wildcard() && !address.unmapped().same_host(place.unmapped())) {
    if (!failures.empty()) failures += "; ";
    failures += address.to_string() + ": device " + context_.attributes().device + " is met at " +
                place.host() + " only; listen there";
    errno = EADDRNOTAVAIL;
    return false;
  }
  Descriptor socket = make_tcp_socket(address.family());
  if (socket) {
    set_option(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1);
    if (address.family() == AF_INET6)
      set_option(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, address.is_wildcard() ? 0 : 1);
    if (::bind(socket.get(), address.data(), address.size()) == 0 && ::listen(socket.get(), 4096) == 0) {
      const auto bound = SocketAddress::local_of(socket.get());
      address_ = bound ? *bound : address;
      socket_ = std::move(socket);
      spare_ = make_spare();
      return true;
    }
  }
  const int error = errno;
  if (!failures.empty()) failures += "; ";
  failures += address.to_string() + ": " + errno_text(error);
  if (error == EADDRINUSE)
    failures += " (another program listens there; choose another port, or 0 for a free one)";
  if (error == EADDRNOTAVAIL) failures += " (it is not an address of this host)";
  socket.reset();
  errno = error;
  return false;
}

void ListenerCore::start() { watch_ = context_.service().watch(socket_.get(), EPOLLIN, shared_from_this()); }

void ListenerCore::on_ready(std::uint32_t) {
  for (int i = 0; i < accepts_per_round && !closed_ && !pause_timer_; ++i) {
    Descriptor socket = Descriptor::from(
        [this] { return ::accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC); });
    if (socket) {
      warned_ = false;
      if (context_.incoming().size() >= ContextCore::max_incoming) {
        turn_away(std::move(socket), "too many connections are being made at once");
        continue;
      }
      const auto incoming =
          std::make_shared<IncomingConnection>(context_, weak_from_this(), std::move(socket));
      incoming->start();
      context_.incoming().insert(incoming);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return;
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      out_of_descriptors(errno);
    }
    // Anything else concerns the one connection that was to be taken: the next one may be fine.
  }
}

void ListenerCore::out_of_descriptors(int error) noexcept {
  if (!warned_) {
    warned_ = true;
    log(LogLevel::warning, "cannot take connections at {}: {}", address_.to_string(), errno_text(error));
  }
  spare_.reset();
  Descriptor socket = Descriptor::from(
      [this] { return ::accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC); });
  if (!socket) {
    if (errno != EAGAIN && errno != EWOULDBLOCK) pause();
  } else {
    try {
      turn_away(std::move(socket), "the listening process cannot take it: " + errno_text(error));
    } catch (const std::exception&) {
      // Out of memory as well: closing says enough.
    }
  }
  spare_ = make_spare();
  if (!spare_) pause();
}

void ListenerCore::turn_away(Descriptor socket, std::string_view why) noexcept {
  try {
    FrameStream stream(std::move(socket));
    stream.send(wire::encode(wire::Refuse{.status = Status::resource_limit, .text = std::string(why)}));
    stream.close();
  } catch (const std::exception&) {
    // Closing says enough.
  }
}

void ListenerCore::pause() noexcept {
  // The socket stays readable; looking again at once would only burn the processor.
  if (pause_timer_ || closed_) return;
  context_.service().change(watch_, 0);
  try {
    pause_timer_ = context_.service().add_timer(pause_time, [this] {
      pause_timer_ = {};
      if (!spare_) spare_ = make_spare();
      context_.service().change(watch_, EPOLLIN);
    });
  } catch (const std::exception&) {
    context_.service().change(watch_, EPOLLIN);
  }
}

void ListenerCore::on_fault(std::string_view what) noexcept {
  log(LogLevel::warning, "a connection at {} could not be taken: {}", address_.to_string(), what);
  pause();
}

void ListenerCore::arrive(FrameStream stream, wire::Hello hello, std::uint16_t protocol,
                          std::shared_ptr<Link> link) {
  const auto arrival = std::make_shared<Arrival>(context_, weak_from_this(), std::move(stream),
                                                 std::move(hello), protocol, std::move(link));
  arrival->start();
  waiting_.push_back(arrival);
  Completion report;
  report.operation = Operation::connection_request;
  report.user_value = user_value_;
  queue_->report(report, arrival.get());
}

std::shared_ptr<Arrival> ListenerCore::next() noexcept {
  if (waiting_.empty()) return nullptr;
  auto arrival = std::move(waiting_.front());
  waiting_.pop_front();
  return arrival;
}

void ListenerCore::withdraw(Arrival& arrival) noexcept {
  const auto found = std::find_if(waiting_.begin(), waiting_.end(),
                                  [&](const auto& other) { return other.get() == &arrival; });
  if (found == waiting_.end()) return;
  waiting_.erase(found);
  queue_->take_back(&arrival);
}

void ListenerCore::close() noexcept {
  if (closed_) return;
  closed_ = true;
  const auto alive = shared_from_this();
  context_.service().cancel_timer(pause_timer_);
  context_.service().unwatch(watch_);
  socket_.reset();
  spare_.reset();
  while (const auto arrival = next()) {
    queue_->take_back(arrival.get());
    arrival->reject({});
  }
  const auto incoming = context_.incoming();  // a copy: refusing removes
  for (const auto& connection : incoming) {
    if (connection->is_from(*this)) connection->refuse(Status::refused, "the listener was closed");
  }
  context_.remove_listener(*this);
}

}  // namespace weft::core
