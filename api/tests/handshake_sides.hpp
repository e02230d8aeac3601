// The two sides of a handshake, and strangers who are neither, for tests of connecting.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <vector>

#include "expect_error.hpp"
#include "fake_provider.hpp"
#include "pair.hpp"

namespace weft::test {

// A plain TCP peer on loopback.
class Stranger {
 public:
  explicit Stranger(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const sockaddr_in address = loopback(port);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  explicit Stranger(int socket) : socket_(socket) {}
  ~Stranger() { ::close(socket_); }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  static sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }
  void say(std::span<const std::byte> bytes) {
    EXPECT_EQ(::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  // Everything until the peer closes.
  std::vector<std::byte> hear() {
    std::vector<std::byte> all;
    std::byte piece[512];
    for (ssize_t n = 0; (n = ::recv(socket_, piece, sizeof piece, 0)) > 0;)
      all.insert(all.end(), piece, piece + n);
    return all;
  }
  int socket() const { return socket_; }

 private:
  int socket_;
};

// A listening socket that is not weft's.
struct Door {
  int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::uint16_t port = 0;
  Door() {
    sockaddr_in address = Stranger::loopback(0);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(socket, 16), 0);
    EXPECT_EQ(::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port = ntohs(address.sin_port);
  }
  ~Door() { ::close(socket); }
  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port); }
};

struct Server {
  FakeOpen open;
  CompletionQueue queue;
  Listener listener;

  explicit Server(FakeBehaviour behaviour = {}, std::uint32_t backlog = 1024)
      : open(open_fake(std::move(behaviour))), queue(open.context.create_completion_queue()) {
    ListenOptions options;
    options.queue = queue;
    options.user_value = 77;
    options.backlog = backlog;
    listener = open.context.listen("127.0.0.1:0", options);
  }
  std::optional<ConnectionRequest> arrival() {
    EXPECT_EQ(next(queue, Operation::connection_request).user_value, 77U);
    return listener.next();
  }
};

struct Client {
  FakeOpen open;
  CompletionQueue queue;
  explicit Client(FakeBehaviour behaviour = {})
      : open(open_fake(std::move(behaviour))), queue(open.context.create_completion_queue()) {}
  Endpoint connect(const std::string& address, std::chrono::milliseconds timeout = 5s,
                   std::string_view private_data = {}) {
    EndpointOptions options = with_queue(queue, 5);
    options.timeout = timeout;
    options.private_data = bytes_of(private_data);
    return open.context.connect(address, options);
  }
  void expect_outcome(Endpoint& endpoint, Status status, std::string_view text) {
    const Completion outcome = next(queue, Operation::connect);
    EXPECT_EQ(outcome.status, status) << to_string(outcome.status) << ": " << endpoint.describe_end();
    EXPECT_EQ(outcome.endpoint_id, endpoint.id());
    EXPECT_EQ(outcome.user_value, 5U);
    EXPECT_SAYS(endpoint.describe_end(), text);
  }
};

}  // namespace weft::test
