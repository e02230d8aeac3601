#include "events.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <utility>

namespace fakeverbs {
namespace {

// Names in the abstract namespace vanish with their socket; nothing is left behind by a killed process.
socklen_t fill(sockaddr_un& name, const std::string& network, const EventAddress& address) {
  const std::string text = "weft-fakeverbs/" + std::to_string(::getuid()) + "/" + network + "/" +
                           std::to_string(address.pid) + "/" + std::to_string(address.channel);
  name = {};
  name.sun_family = AF_UNIX;
  const std::size_t length = std::min(text.size(), sizeof name.sun_path - 1);
  std::copy_n(text.data(), length, name.sun_path + 1);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
}

}  // namespace

int open_event_descriptor(const std::string& network, const EventAddress& address) {
  const int descriptor = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return -1;
  sockaddr_un name;
  const socklen_t length = fill(name, network, address);
  if (::bind(descriptor, reinterpret_cast<const sockaddr*>(&name), length) == 0) return descriptor;
  const int error = errno;
  ::close(descriptor);
  errno = error;
  return -1;
}

EventSender::EventSender(std::string network)
    : network_(std::move(network)), descriptor_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {}

EventSender::~EventSender() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool EventSender::send(const EventAddress& address, const Event& event) const {
  sockaddr_un name;
  const socklen_t length = fill(name, network_, address);
  while (true) {
    if (::sendto(descriptor_, &event, sizeof event, MSG_DONTWAIT | MSG_NOSIGNAL,
                 reinterpret_cast<const sockaddr*>(&name), length) >= 0) {
      return true;
    }
    if (errno == EINTR) continue;
    // Nobody there: nobody misses it.
    return errno != EAGAIN && errno != ENOBUFS;
  }
}

int receive_event(int descriptor, Event& event) {
  const ssize_t got = ::recv(descriptor, &event, sizeof event, 0);
  if (got < 0) return -1;
  if (got == static_cast<ssize_t>(sizeof event)) return 0;
  errno = EIO;
  return -1;
}

}  // namespace fakeverbs
