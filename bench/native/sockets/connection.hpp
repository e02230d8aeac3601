// A TCP connection as a careful user of bare sockets would set it up: non-blocking, no delay, spinning.
#pragma once

#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>

namespace perf::sockets {

/// Large transfers go in pieces of this size, unless a workload asks for whole messages.
inline constexpr std::size_t piece_size = 64 * 1024;

[[noreturn]] void throw_socket_error(const char* what, int error);

/// Owns a descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.number_) { other.number_ = -1; }
  Descriptor& operator=(Descriptor&& other) noexcept;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor();

  [[nodiscard]] int number() const { return number_; }

 private:
  int number_ = -1;
};

class Connection {
 public:
  Connection() = default;
  explicit Connection(Descriptor socket);

  /// Sends all bytes, at most `piece` per call, spinning while the socket is full.
  void send(const void* data, std::size_t length, std::size_t piece = piece_size) {
    const auto* at = static_cast<const std::byte*>(data);
    while (length > 0) {
      const ssize_t sent = ::send(socket_.number(), at, length < piece ? length : piece, MSG_NOSIGNAL);
      if (sent > 0) {
        at += sent;
        length -= static_cast<std::size_t>(sent);
      } else if (errno != EAGAIN && errno != EINTR) {
        throw_socket_error("send", errno);
      }
    }
  }

  /// Receives exactly `length` bytes, at most `piece` per call, spinning until they are there.
  void receive(void* data, std::size_t length, std::size_t piece = piece_size) {
    auto* at = static_cast<std::byte*>(data);
    while (length > 0) {
      const std::size_t got = receive_some(at, length < piece ? length : piece);
      at += got;
      length -= got;
    }
  }

  /// Whatever is there, spinning until it is at least one byte.
  [[nodiscard]] int number() const { return socket_.number(); }

  std::size_t receive_some(void* data, std::size_t capacity) {
    for (;;) {
      const ssize_t got = ::recv(socket_.number(), data, capacity, 0);
      if (got > 0) return static_cast<std::size_t>(got);
      if (got == 0) throw_socket_error("recv", ECONNRESET);
      if (errno != EAGAIN && errno != EINTR) throw_socket_error("recv", errno);
    }
  }

 private:
  Descriptor socket_;
};

/// Listens on a free loopback port.
class Listener {
 public:
  Listener();
  [[nodiscard]] std::string address() const { return std::to_string(port_); }
  [[nodiscard]] Connection accept();

 private:
  Descriptor socket_;
  std::uint16_t port_ = 0;
};

/// Connects to the loopback port that Listener::address told.
[[nodiscard]] Connection connect_to(const std::string& address);

/// Untimed round trips before the clock starts, so that both processes are awake.
void meet_as_client(Connection& connection);
void meet_as_server(Connection& connection);

}  // namespace perf::sockets
