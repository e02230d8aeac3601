#include "rendezvous.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include "weft/engine/limit_text.hpp"

namespace unix_provider {

namespace {

using weft::Error;
using weft::Status;
using weft::engine::descriptor_error_text;

// A name that starts with a zero byte lives in no file system: nothing is left behind when its socket is
// gone.
struct Address {
  sockaddr_un value{};
  socklen_t length = 0;

  explicit Address(const Invitation& invitation) noexcept {
    constexpr std::string_view prefix = "weft-unix-";
    constexpr std::string_view digits = "0123456789abcdef";
    value.sun_family = AF_UNIX;
    char* at = std::copy(prefix.begin(), prefix.end(), value.sun_path + 1);
    for (const std::byte byte : invitation.name) {
      *at++ = digits[std::to_integer<std::size_t>(byte >> 4)];
      *at++ = digits[std::to_integer<std::size_t>(byte & std::byte{15})];
    }
    length = static_cast<socklen_t>(at - reinterpret_cast<char*>(&value));
  }
  [[nodiscard]] const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&value); }
};

Descriptor make_socket() {
  Descriptor made(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!made) {
    throw Error(Status::resource_limit, "cannot make a Unix-domain socket: " + descriptor_error_text(errno));
  }
  return made;
}

}  // namespace

void Invitation::encode(std::span<std::byte, size> out) const noexcept {
  std::copy(secret.begin(), secret.end(), std::copy(name.begin(), name.end(), out.begin()));
}

Invitation Invitation::decode(std::span<const std::byte, size> bytes) noexcept {
  Invitation invitation;
  std::copy_n(bytes.begin(), part, invitation.name.begin());
  std::copy_n(bytes.begin() + part, part, invitation.secret.begin());
  return invitation;
}

Rendezvous::Rendezvous(const weft::provider::Host& host) : socket_(make_socket()) {
  host.random_bytes(invitation_.name);
  host.random_bytes(invitation_.secret);
  const Address address(invitation_);
  constexpr int backlog = 8;  // the peer, and a few who have no business here
  if (::bind(socket_.get(), address.get(), address.length) != 0 || ::listen(socket_.get(), backlog) != 0) {
    throw Error(Status::resource_limit,
                std::string("cannot wait at a Unix-domain socket: ") + std::strerror(errno));
  }
}

Descriptor Rendezvous::receive_peer() {
  while (true) {
    Descriptor visitor(::accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!visitor && errno == EINTR) continue;
    if (!visitor) {
      throw Error(
          errno == EMFILE || errno == ENFILE ? Status::resource_limit : Status::protocol,
          "the peer did not come to the Unix-domain socket it was told: " + descriptor_error_text(errno));
    }
    std::array<std::byte, Invitation::part> shown{};
    const auto length = ::recv(visitor.get(), shown.data(), shown.size(), MSG_DONTWAIT);
    if (length == static_cast<ssize_t>(shown.size()) && shown == invitation_.secret) return visitor;
  }
}

Descriptor follow(const Invitation& invitation) {
  Descriptor made = make_socket();
  const Address address(invitation);
  // Between Unix-domain sockets this is done at once, or not at all.
  while (::connect(made.get(), address.get(), address.length) != 0) {
    if (errno == EINTR) continue;
    if (errno == EAGAIN) {
      throw Error(Status::resource_limit, "too many connect to the peer's Unix-domain socket; try again");
    }
    throw Error(
        Status::unreachable,
        std::string("the peer's Unix-domain socket cannot be reached: ") + std::strerror(errno) +
            "; this provider connects processes of one host and one network namespace only: choose another "
            "(WEFT_PROVIDER) for the way to other hosts");
  }
  const auto length =
      ::send(made.get(), invitation.secret.data(), invitation.secret.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (length != static_cast<ssize_t>(invitation.secret.size())) {
    throw Error(Status::unreachable,
                std::string("the peer left its Unix-domain socket: ") + std::strerror(errno));
  }
  return made;
}

}  // namespace unix_provider
