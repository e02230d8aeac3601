// CON-1: the one address form; SEL-2, B18: choosing a device.
#include "address.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "device.hpp"
#include "expect_error.hpp"

namespace weft::core {
namespace {

using test::thrown_by;

TEST(AddressCon1, ReadsEveryForm) {
  const struct {
    const char* text;
    const char* host;
    std::uint16_t port;
  } cases[] = {
      {"127.0.0.1:7471", "127.0.0.1", 7471},
      {"node7.example:1", "node7.example", 1},
      {"localhost:65535", "localhost", 65535},
      {"my_host-2:0", "my_host-2", 0},
      {"[::1]:7", "::1", 7},
      {"[fe80::1%lo]:7", "fe80::1%lo", 7},
      {"[::ffff:10.0.0.1]:7", "::ffff:10.0.0.1", 7},
      {":7471", "", 7471},
      {"0.0.0.0:0", "0.0.0.0", 0},
  };
  for (const auto& one : cases) {
    const HostPort read = parse_host_port(one.text);
    EXPECT_EQ(read.host, one.host) << one.text;
    EXPECT_EQ(read.port, one.port) << one.text;
    EXPECT_EQ(read.to_string(), one.text);
  }
}

TEST(AddressCon1, RefusesNonsenseWithTheValueAndWhatIsExpected) {
  const struct {
    std::string text;
    const char* why;
  } cases[] = {
      {"", "empty"},
      {"127.0.0.1", "port is missing"},
      {"host:", "port after ':' is missing"},
      {"host:65536", "\"65536\" is no port"},
      {"host:-1", "\"-1\" is no port"},
      {"host:+1", "\"+1\" is no port"},
      {"host: 1", "\" 1\" is no port"},
      {"host:7x", "\"7x\" is no port"},
      {"host:0x10", "\"0x10\" is no port"},
      {"::1:7", "brackets"},
      {"fe80::1%lo:7", "brackets"},
      {"[::1:7", "']' is missing"},
      {"[::1]", "after ']'"},
      {"[::1]7", "after ']'"},
      {"[::1]:", "port after ':' is missing"},
      {"[]:7", "no IPv6 address"},
      {"[127.0.0.1]:7", "no IPv6 address"},
      {"[host]:7", "no IPv6 address"},
      {"[fe80::1]:7", "needs its interface"},
      {"10.0.0.256:7", "no IPv4 address"},
      {"127.1:7", "no IPv4 address"},
      {"2130706433:7", "no IPv4 address"},
      {"ho st:7", "\" \" cannot be"},
      {"tcp//host:7", "\"/\" cannot be"},
      {std::string("ho\0st:7", 7), "cannot be"},
      {std::string("127.0.0.1\0:7", 12), "cannot be"},
      {std::string(254, 'a') + ":7", "254 characters"},
  };
  for (const auto& one : cases) {
    const auto thrown = thrown_by([&] { static_cast<void>(parse_host_port(one.text)); });
    EXPECT_EQ(thrown.code, Status::invalid_argument) << one.text << ": " << thrown.text;
    EXPECT_SAYS(thrown.text, one.why);
    EXPECT_SAYS(thrown.text, "expected host:port");
    if (one.text.size() < 20 && one.text.find('\0') == std::string::npos) {
      EXPECT_SAYS(thrown.text, '"' + one.text + '"');
    }
  }
}

TEST(AddressCon1, AnUnknownScopeIsRefusedWithTheInterfaces) {
  const auto thrown = thrown_by([] { static_cast<void>(parse_host_port("[fe80::1%nosuch0]:7")); });
  EXPECT_EQ(thrown.code, Status::invalid_argument);
  EXPECT_SAYS(thrown.text, "\"nosuch0\"");
  EXPECT_SAYS(thrown.text, "lo (127.0.0.1");
  EXPECT_EQ(thrown_by([] { static_cast<void>(parse_host_port("[::1%lo]:7")); }).code,
            Status::invalid_argument);
}

TEST(SocketAddressValue, KeepsHostScopeAndPort) {
  auto address = SocketAddress::from_numeric("fe80::1%lo", 7);
  ASSERT_TRUE(address);
  EXPECT_EQ(address->family(), AF_INET6);
  EXPECT_EQ(address->to_string(), "[fe80::1%lo]:7");
  EXPECT_EQ(reinterpret_cast<const sockaddr_in6*>(address->data())->sin6_scope_id, ::if_nametoindex("lo"));
  address->set_port(65535);
  EXPECT_EQ(address->port(), 65535);
  EXPECT_EQ(address->to_string(), "[fe80::1%lo]:65535");

  const auto v4 = SocketAddress::from_numeric("10.1.2.3", 258);
  ASSERT_TRUE(v4);
  EXPECT_EQ(v4->to_string(), "10.1.2.3:258");
  EXPECT_EQ(reinterpret_cast<const sockaddr_in*>(v4->data())->sin_port, htons(258));
  EXPECT_EQ(v4->size(), sizeof(sockaddr_in));
}

TEST(SocketAddressValue, TakesNumericTextOnly) {
  for (const char* const text : {"localhost", "", "1.2.3", "1.2.3.4.5", "1.2.3.4%lo", ":", "[::1]", "::1 "}) {
    EXPECT_FALSE(SocketAddress::from_numeric(text, 1)) << text;
  }
}

TEST(SocketAddressValue, ComesFromBytesAndRefusesBrokenOnes) {
  const auto whole = SocketAddress::from_numeric("::1", 9);
  ASSERT_TRUE(whole);
  const auto copy = SocketAddress::from_bytes(whole->bytes());
  ASSERT_TRUE(copy);
  EXPECT_EQ(*copy, *whole);
  for (std::size_t length = 0; length < whole->bytes().size(); ++length) {
    EXPECT_FALSE(SocketAddress::from_bytes(whole->bytes().first(length))) << length;
  }
  sockaddr_storage other{};
  other.ss_family = AF_UNIX;
  EXPECT_FALSE(SocketAddress::from_sockaddr(reinterpret_cast<const sockaddr*>(&other), sizeof other));
  EXPECT_FALSE(SocketAddress::from_sockaddr(nullptr, 0));
}

TEST(SocketAddressValue, EqualityLooksAtHostScopeAndPort) {
  const auto make = [](const char* host, std::uint16_t port) {
    return SocketAddress::from_numeric(host, port).value();
  };
  EXPECT_EQ(make("::1", 1), make("0:0::1", 1));
  EXPECT_NE(make("::1", 1), make("::1", 2));
  EXPECT_NE(make("::1", 1), make("::2", 1));
  EXPECT_NE(make("127.0.0.1", 1), make("::ffff:127.0.0.1", 1));
  EXPECT_NE(make("fe80::1", 1), make("fe80::1%lo", 1));
  EXPECT_TRUE(make("127.0.0.1", 1).same_host(make("127.0.0.1", 2)));
  EXPECT_NE(SocketAddress(), make("0.0.0.0", 0));
}

TEST(SocketAddressValue, KnowsWildcardsLoopbackAndMappedAddresses) {
  const auto make = [](const char* host) { return SocketAddress::from_numeric(host, 5).value(); };
  for (const char* const host : {"0.0.0.0", "::", "::ffff:0.0.0.0"})
    EXPECT_TRUE(make(host).is_wildcard()) << host;
  for (const char* const host : {"127.0.0.1", "::1", "10.0.0.0"})
    EXPECT_FALSE(make(host).is_wildcard()) << host;
  for (const char* const host : {"127.9.9.9", "::1", "::ffff:127.0.0.1"}) {
    EXPECT_TRUE(make(host).is_loopback()) << host;
  }
  for (const char* const host : {"128.0.0.1", "::2", "0.0.0.0"})
    EXPECT_FALSE(make(host).is_loopback()) << host;
  EXPECT_EQ(make("::ffff:10.0.0.1").unmapped().to_string(), "10.0.0.1:5");
  EXPECT_EQ(make("::1").unmapped().to_string(), "[::1]:5");
  EXPECT_EQ(SocketAddress::wildcard(AF_INET, 3).to_string(), "0.0.0.0:3");
  EXPECT_EQ(SocketAddress::wildcard(AF_INET6, 3).to_string(), "[::]:3");
  EXPECT_FALSE(SocketAddress());
  EXPECT_EQ(SocketAddress().to_string(), "none");
  EXPECT_FALSE(SocketAddress().is_wildcard());
}

TEST(SocketAddressValue, TellsASocketsOwnAddress) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_GE(socket, 0);
  const auto wanted = SocketAddress::from_numeric("127.0.0.2", 0).value();
  ASSERT_EQ(::bind(socket, wanted.data(), wanted.size()), 0) << std::strerror(errno);
  const auto bound = SocketAddress::local_of(socket);
  ASSERT_TRUE(bound);
  EXPECT_TRUE(bound->same_host(wanted));
  EXPECT_NE(bound->port(), 0);
  EXPECT_FALSE(SocketAddress::peer_of(socket));
  ::close(socket);
  EXPECT_FALSE(SocketAddress::local_of(-1));
}

TEST(DeviceSel2, FindsByInterfaceAndByAddress) {
  const DeviceAddress by_name = find_device("lo");
  EXPECT_EQ(by_name.interface, "lo");
  EXPECT_EQ(by_name.index, ::if_nametoindex("lo"));
  EXPECT_EQ(by_name.address.to_string(), "127.0.0.1:0");

  const DeviceAddress by_address = find_device("127.0.0.1");
  EXPECT_EQ(by_address.interface, "lo");
  EXPECT_EQ(by_address.address.to_string(), "127.0.0.1:0");

  // Only 127.0.0.1 is listed, but the whole network is local.
  const DeviceAddress other = find_device("127.0.0.2");
  EXPECT_EQ(other.interface, "lo");
  EXPECT_EQ(other.address.to_string(), "127.0.0.2:0");
}

TEST(DeviceB18, AnUnknownOneIsRefusedWithTheList) {
  for (const char* const device :
       {"nosuch0", "192.0.2.77", "2001:db8::77", "fe80::7777", "127.0.0.1:80", ""}) {
    const auto thrown = thrown_by([&] { static_cast<void>(find_device(device)); });
    EXPECT_EQ(thrown.code, Status::not_found) << device << ": " << thrown.text;
    EXPECT_SAYS(thrown.text, std::string("\"") + device + '"');
    EXPECT_SAYS(thrown.text, "lo (127.0.0.1");
  }
  const auto thrown = thrown_by([&] { static_cast<void>(find_device("0.0.0.0")); });
  EXPECT_EQ(thrown.code, Status::invalid_argument);
  EXPECT_SAYS(thrown.text, "all addresses");
}

}  // namespace
}  // namespace weft::core
