#include "bootstrap/socket.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>

#include "text.hpp"

namespace weft::core {

Status status_of_errno(int error) noexcept {
  switch (error) {
    case ECONNREFUSED:
      return Status::refused;
    case ETIMEDOUT:
      return Status::timed_out;
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EHOSTDOWN:
    case ENETDOWN:
    case EADDRNOTAVAIL:
    case EACCES:  // a route or a rule of the firewall forbids it
    case EPERM:
    case EAFNOSUPPORT:
    case EINVAL:
      return Status::unreachable;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOBUFS:
    case ENOSPC:
    case EAGAIN:  // no free local port
      return Status::resource_limit;
    case ECONNRESET:
    case ECONNABORTED:
    case EPIPE:
      return Status::protocol;
    default:
      return Status::system_error;
  }
}

std::string errno_text(int error) {
  std::string text = system_text(error);
  if (error == EMFILE) {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
      text += ": the process may have " + std::to_string(limit.rlim_cur) +
              " descriptors (RLIMIT_NOFILE); raise it with ulimit -n, or close some";
    }
  } else if (error == ENFILE) {
    text += ": the system's limit fs.file-max is reached";
  }
  return text;
}

Descriptor make_tcp_socket(int family) {
  return Descriptor::from(
      [family] { return ::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); });
}

void set_option(int socket, int level, int name, int value) noexcept {
  (void)::setsockopt(socket, level, name, &value, sizeof value);  // all are wishes
}

void set_no_delay(int socket) noexcept { set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1); }

void watch_peer(int socket, std::chrono::milliseconds limit, bool user_timeout) noexcept {
  // The kernel probes in whole seconds: first after `idle`, then every `interval`, and it looks at the limit
  // only when it probes. Both together must stay under the limit.
  const auto seconds = static_cast<int>(limit.count() / 1000);
  const int idle = std::clamp(seconds / 3, 1, 3600);
  const int interval = std::clamp(seconds / 8, 1, 600);
  const int count = std::clamp((seconds - idle) / interval - 1, 1, 100);
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, idle);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, interval);
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, count);
  if (user_timeout) {
    set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT,
               static_cast<int>(std::max<std::int64_t>(limit.count() * 3 / 4, 300)));
  }
}

void unwatch_peer(int socket) noexcept {
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 0);
  set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, 0);
}

void close_gently(Descriptor descriptor) noexcept {
  if (!descriptor) return;
  ::shutdown(descriptor.get(), SHUT_WR);
  // Unread bytes at close would make the kernel reset the connection, which may overtake what was sent.
  char unread[4096];
  for (int i = 0; i < 16; ++i) {
    if (::recv(descriptor.get(), unread, sizeof unread, MSG_DONTWAIT) <= 0 && errno != EINTR) break;
  }
}

void raise_descriptor_limit() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace weft::core
