#include "connection.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <array>
#include <string_view>
#include <system_error>
#include <utility>

#include "../../role.hpp"

namespace perf::sockets {
namespace {

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

Descriptor stream_socket() {
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (socket.number() < 0) throw_socket_error("socket", errno);
  return socket;
}

}  // namespace

void throw_socket_error(const char* what, int error) {
  throw std::system_error(error, std::generic_category(), std::string("bare sockets: ") + what);
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(number_, other.number_);
  return *this;
}

Descriptor::~Descriptor() {
  if (number_ >= 0) ::close(number_);
}

Connection::Connection(Descriptor socket) : socket_(std::move(socket)) {
  const int one = 1;
  if (::setsockopt(socket_.number(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0) {
    throw_socket_error("setsockopt TCP_NODELAY", errno);
  }
  // As weft does: pacing only slows a connection down that stays on this host.
  std::array<char, 16> control{};
  socklen_t length = control.size() - 1;
  if (::getsockopt(socket_.number(), IPPROTO_TCP, TCP_CONGESTION, control.data(), &length) == 0 &&
      std::string_view(control.data()).starts_with("bbr")) {
    (void)::setsockopt(socket_.number(), IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
  }
  const int flags = ::fcntl(socket_.number(), F_GETFL);
  if (::fcntl(socket_.number(), F_SETFL, flags | O_NONBLOCK) != 0)
    throw_socket_error("fcntl O_NONBLOCK", errno);
}

Listener::Listener() : socket_(stream_socket()) {
  sockaddr_in address = loopback(0);
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(socket_.number(), generic, length) != 0) throw_socket_error("bind to 127.0.0.1", errno);
  if (::listen(socket_.number(), SOMAXCONN) != 0) throw_socket_error("listen", errno);
  if (::getsockname(socket_.number(), generic, &length) != 0) throw_socket_error("getsockname", errno);
  port_ = ntohs(address.sin_port);
}

Connection Listener::accept() {
  Descriptor socket(::accept4(socket_.number(), nullptr, nullptr, SOCK_CLOEXEC));
  if (socket.number() < 0) throw_socket_error("accept", errno);
  return Connection(std::move(socket));
}

Connection connect_to(const std::string& address) {
  Descriptor socket = stream_socket();
  const sockaddr_in peer = loopback(static_cast<std::uint16_t>(std::stoul(address)));
  if (::connect(socket.number(), reinterpret_cast<const sockaddr*>(&peer), sizeof peer) != 0) {
    throw_socket_error("connect to 127.0.0.1", errno);
  }
  return Connection(std::move(socket));
}

void meet_as_client(Connection& connection) {
  char token = 0;
  for (int round = 0; round < meeting_rounds; ++round) {
    connection.send(&token, 1);
    connection.receive(&token, 1);
  }
}

void meet_as_server(Connection& connection) {
  char token = 0;
  for (int round = 0; round < meeting_rounds; ++round) {
    connection.receive(&token, 1);
    connection.send(&token, 1);
  }
}

}  // namespace perf::sockets
