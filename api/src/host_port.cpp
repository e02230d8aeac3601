// Reading the one address form (CON-1).
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "address.hpp"
#include "text.hpp"
#include "weft/status.hpp"

namespace weft::core {
namespace {

constexpr std::size_t longest_name = 253;  // of a DNS name

[[noreturn]] void refuse(std::string_view value, std::string_view why) {
  throw Error(Status::invalid_argument,
              fmt::format("the address {} is not usable: {}; expected host:port, for instance "
                          "\"node7.example:7471\", \"10.0.0.1:7471\", \"[::1]:7471\", "
                          "\"[fe80::1%eth0]:7471\", or \":7471\" to listen on all addresses",
                          quoted(value), why));
}

std::uint16_t read_port(std::string_view value, std::string_view text) {
  if (text.empty()) refuse(value, "the port after ':' is missing");
  std::uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, port);
  if (error != std::errc() || stopped != end) {
    refuse(value, fmt::format("{} is no port (0 to 65535)", quoted(text)));
  }
  return port;
}

// A name as resolvers take them. Others would not resolve; said here the reason is plainer.
void check_name(std::string_view value, std::string_view name) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto is_allowed = [&](char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' ||
           c == '.';
  };
  if (name.size() > longest_name) {
    refuse(value, fmt::format("the host name has {} characters, more than {}", name.size(), longest_name));
  }
  const auto bad = std::find_if_not(name.begin(), name.end(), is_allowed);
  if (bad != name.end()) {
    refuse(value,
           fmt::format("the character {} cannot be in a host name", quoted(std::string_view(&*bad, 1))));
  }
  // "10.0.0.256" and "127.1" are meant as numbers; a resolver would ask the network for them, or guess.
  if (std::all_of(name.begin(), name.end(), [&](char c) { return is_digit(c) || c == '.'; })) {
    refuse(value, fmt::format("{} is no IPv4 address (four numbers of 0 to 255)", quoted(name)));
  }
}

}  // namespace

std::string HostPort::to_string() const {
  const bool needs_brackets = host.find(':') != std::string::npos;
  return needs_brackets ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

HostPort parse_host_port(std::string_view text) {
  if (text.empty()) refuse(text, "it is empty");
  HostPort result;
  if (text.front() == '[') {
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos) refuse(text, "the closing ']' is missing");
    result.host = text.substr(1, close - 1);
    const std::string_view rest = text.substr(close + 1);
    if (rest.empty() || rest.front() != ':') refuse(text, "after ']' comes ':' and the port");
    result.port = read_port(text, rest.substr(1));
    const auto address = SocketAddress::from_numeric(result.host, result.port);
    if (!address || address->family() != AF_INET6) {
      refuse(text, fmt::format("{} is no IPv6 address", quoted(result.host)));
    }
    if (address->lacks_scope()) {
      refuse(text, fmt::format("{} is a link-local address and needs its interface, as in [{}%eth0]",
                               quoted(result.host), result.host));
    }
    return result;
  }
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) refuse(text, "the port is missing");
  if (text.find(':', colon + 1) != std::string_view::npos) {
    refuse(text, "it has more than one ':' (an IPv6 address stands in brackets)");
  }
  result.host = text.substr(0, colon);
  result.port = read_port(text, text.substr(colon + 1));
  if (!result.host.empty() && !SocketAddress::from_numeric(result.host, result.port)) {
    check_name(text, result.host);
  }
  return result;
}

}  // namespace weft::core
