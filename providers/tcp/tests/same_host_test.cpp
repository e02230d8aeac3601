#include "same_host.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>

namespace weft::tcp {
namespace {

// A connected pair over loopback; the client may come from another loopback address than it goes to.
struct Sockets {
  int listener = -1;
  int client = -1;
  int server = -1;

  explicit Sockets(const char* from) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    client = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener, 1), 0);
    sockaddr_in source{};
    source.sin_family = AF_INET;
    source.sin_addr.s_addr = ::inet_addr(from);
    EXPECT_EQ(::bind(client, reinterpret_cast<const sockaddr*>(&source), sizeof source), 0);
    socklen_t size = sizeof address;
    EXPECT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
    EXPECT_EQ(::connect(client, reinterpret_cast<const sockaddr*>(&address), size), 0);
    server = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    EXPECT_GE(server, 0);
  }
  ~Sockets() {
    for (const int socket : {listener, client, server}) ::close(socket);
  }
  Sockets(const Sockets&) = delete;
  Sockets& operator=(const Sockets&) = delete;
};

std::string congestion_control(int socket) {
  std::array<char, 16> name{};
  socklen_t size = name.size() - 1;
  EXPECT_EQ(::getsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, name.data(), &size), 0);
  return name.data();
}

TEST(SameHost, KnowsLoopbackFromEitherEnd) {
  for (const char* const from : {"127.0.0.1", "127.0.0.9"}) {
    const Sockets sockets(from);
    EXPECT_TRUE(stays_on_this_host(sockets.client));
    EXPECT_TRUE(stays_on_this_host(sockets.server));
  }
}

TEST(SameHost, SaysNoOfWhatIsNotConnected) {
  const int lone = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_FALSE(stays_on_this_host(lone));
  EXPECT_FALSE(stays_on_this_host(-1));
  ::close(lone);
}

TEST(SameHost, NeverLeavesAPacedConnectionAndKeepsAnyOther) {
  const Sockets sockets("127.0.0.1");
  const std::string before = congestion_control(sockets.client);
  stop_pacing_on_this_host(sockets.client);
  const std::string after = congestion_control(sockets.client);
  if (before.starts_with("bbr")) {
    EXPECT_EQ(after, "reno");
  } else {
    EXPECT_EQ(after, before);
  }
  EXPECT_FALSE(after.starts_with("bbr"));
}

}  // namespace
}  // namespace weft::tcp
