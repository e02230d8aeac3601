// Calls of the C library that are wrong on purpose, to be preloaded under weft-conformance: what the core
// makes of them is as wrong as a core with that fault would be. MUTANT_BENEATH names the fault,
// MUTANT_STRUCK_FILE takes a mark for each time it struck.
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "fault.hpp"
#include "frames.hpp"
#include "strangers.hpp"

namespace {

using fault::at;
using fault::header_size;
using fault::is;
using fault::is_frame;
using fault::is_tcp;
using fault::real;
using fault::strike;

constexpr std::uint16_t accept_type = 5;
constexpr std::uint16_t reject_type = 6;

}  // namespace

// Seen by everybody, as what they stand for.
#pragma GCC visibility push(default)
extern "C" {

int getaddrinfo(const char* node, const char* service, const addrinfo* hints, addrinfo** result) {
  const int status = real<decltype(::getaddrinfo)>("getaddrinfo")(node, service, hints, result);
  if (status == 0 && is("tries-one-address") && (*result)->ai_next != nullptr) {
    strike();
    (*result)->ai_next = nullptr;
  }
  // CON-1: "A name is tried on all its addresses": here those of the first one's family.
  if (status == 0 && is("forgets-the-other-family")) {
    for (addrinfo* info = *result; info->ai_next != nullptr;) {
      if (info->ai_next->ai_family == (*result)->ai_family) {
        info = info->ai_next;
      } else {
        strike();
        info->ai_next = info->ai_next->ai_next;
      }
    }
  }
  return status;
}

int connect(int descriptor, const sockaddr* address, socklen_t length) {
  auto* call = real<decltype(::connect)>("connect");
  if (is("loses-the-scope") && address->sa_family == AF_INET6) {
    sockaddr_in6 changed = at<sockaddr_in6>(address, 0);
    if (changed.sin6_scope_id != 0) {
      strike();
      changed.sin6_scope_id = 0;
      return call(descriptor, reinterpret_cast<const sockaddr*>(&changed), length);
    }
  }
  return call(descriptor, address, length);
}

int getsockname(int descriptor, sockaddr* address, socklen_t* length) {
  const int status = real<decltype(::getsockname)>("getsockname")(descriptor, address, length);
  if (status == 0 && is("hands-out-the-wildcard") && address->sa_family == AF_INET) {
    strike();
    reinterpret_cast<sockaddr_in*>(address)->sin_addr.s_addr = 0;
  }
  // CON-1: "Port 0 takes a free port and the listener tells it".
  int listens = 0;
  socklen_t size = sizeof listens;
  if (status == 0 && is("tells-no-port-on-ipv6") && address->sa_family == AF_INET6 &&
      ::getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens != 0) {
    strike();
    reinterpret_cast<sockaddr_in6*>(address)->sin6_port = 0;
  }
  return status;
}

ssize_t recv(int descriptor, void* bytes, size_t size, int flags) {
  const ssize_t count = real<decltype(::recv)>("recv")(descriptor, bytes, size, flags);
  constexpr std::size_t preamble = 12;
  if (count > 0) fault::strangers::heard(descriptor);
  if (count <= 0 || (flags & MSG_PEEK) != 0) return count;
  const std::string_view text(static_cast<const char*>(bytes), static_cast<std::size_t>(count));
  if (is("listens-to-garbage") && (text.starts_with("GET ") || text.starts_with("SSH-")) &&
      is_tcp(descriptor)) {
    strike();
    std::array<char, 4096> rest{};
    while (real<decltype(::recv)>("recv")(descriptor, rest.data(), rest.size(), MSG_DONTWAIT) > 0) {
    }
    errno = EAGAIN;
    return -1;
  }
  if (is("speaks-every-version") && text.size() == preamble && text.starts_with("WEFT")) {
    constexpr std::uint16_t version = 1;
    if (at<std::uint16_t>(bytes, 4) != version) strike();
    std::memcpy(static_cast<char*>(bytes) + 4, &version, sizeof version);
    std::memcpy(static_cast<char*>(bytes) + 6, &version, sizeof version);
  }
  return count;
}

ssize_t send(int descriptor, const void* bytes, size_t size, int flags) {
  auto* call = real<decltype(::send)>("send");
  if (is("raises-sigpipe") && (flags & MSG_NOSIGNAL) != 0 && is_tcp(descriptor)) {
    strike();
    return call(descriptor, bytes, size, flags & ~MSG_NOSIGNAL);
  }
  // Private data stands at the end of these frames, its length in 16 bits before it.
  const char* first = static_cast<const char*>(bytes);
  if (is("private-data-changes-its-last-byte") && is_frame(bytes, size, accept_type) && size > 1000) {
    strike();
    std::vector<char> changed(first, first + size);
    changed.back() = static_cast<char>(changed.back() ^ 1);
    return call(descriptor, changed.data(), changed.size(), flags);
  }
  if (is("rejects-with-a-byte-less") && is_frame(bytes, size, reject_type) && size > header_size + 2) {
    strike();
    std::vector<char> changed(first, first + size - 1);
    const auto length = static_cast<std::uint32_t>(changed.size() - header_size);
    const auto data = static_cast<std::uint16_t>(length - 2);
    std::memcpy(changed.data(), &length, sizeof length);
    std::memcpy(changed.data() + header_size, &data, sizeof data);
    const ssize_t sent = call(descriptor, changed.data(), changed.size(), flags);
    return sent < 0 ? sent : sent + 1;
  }
  if (const auto changed = fault::frames::changed(bytes, size)) {
    strike();
    const ssize_t sent = call(descriptor, changed->data(), changed->size(), flags);
    return sent == static_cast<ssize_t>(changed->size()) ? static_cast<ssize_t>(size) : sent;
  }
  return call(descriptor, bytes, size, flags);
}

}  // extern "C"
#pragma GCC visibility pop
