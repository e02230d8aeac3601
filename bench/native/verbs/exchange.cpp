#include "exchange.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <thread>

namespace weft::native {
namespace {

[[noreturn]] void fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

int without_delay(int descriptor) {
  const int on = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return descriptor;
}

}  // namespace

Exchange::~Exchange() { close(descriptor_); }

int Exchange::accept_one(std::uint16_t port) {
  const int listener = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0) fail("cannot create a socket");
  const int on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(port);
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener, 1) != 0) {
    fail("cannot listen on port " + std::to_string(port));
  }
  const int descriptor = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  if (descriptor < 0) fail("cannot accept on port " + std::to_string(port));
  close(listener);
  return without_delay(descriptor);
}

int Exchange::connect_to(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found); error != 0) {
    throw std::runtime_error("cannot resolve '" + host + "': " + gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(found, &freeaddrinfo);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (true) {
    for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
      const int descriptor = socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (descriptor < 0) continue;
      if (connect(descriptor, one->ai_addr, one->ai_addrlen) == 0) return without_delay(descriptor);
      const int error = errno;
      close(descriptor);
      errno = error;
    }
    if (std::chrono::steady_clock::now() > deadline) {
      fail("cannot connect to " + host + " port " + std::to_string(port) + " (is the other side started?)");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

void Exchange::send_all(const void* data, std::size_t size) {
  const auto* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t sent = send(descriptor_, bytes, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) fail("the other side has gone");
    bytes += sent;
    size -= static_cast<std::size_t>(sent);
  }
}

void Exchange::receive_all(void* data, std::size_t size) {
  auto* bytes = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t received = recv(descriptor_, bytes, size, 0);
    if (received < 0 && errno == EINTR) continue;
    if (received < 0) fail("cannot hear the other side");
    if (received == 0) throw std::runtime_error("the other side has gone; its own message says why");
    bytes += received;
    size -= static_cast<std::size_t>(received);
  }
}

void Exchange::check_peer() const {
  char byte = 0;
  if (recv(descriptor_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0) {
    throw std::runtime_error("the other side has gone; its own message says why");
  }
}

}  // namespace weft::native
