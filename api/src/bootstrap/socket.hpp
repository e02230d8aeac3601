// Sockets and system errors as the bootstrap needs them.
#pragma once

#include <chrono>
#include <string>

#include "address.hpp"
#include "bootstrap/descriptor.hpp"
#include "weft/status.hpp"

namespace weft::core {

// The outcome of connecting that an errno value stands for.
[[nodiscard]] Status status_of_errno(int error) noexcept;
// The text of an errno value; for limits with the limit's value and what to do (MEM-6).
[[nodiscard]] std::string errno_text(int error);

// A non-blocking TCP socket, or none with errno set.
[[nodiscard]] Descriptor make_tcp_socket(int family);
void set_option(int socket, int level, int name, int value) noexcept;

// Small frames leave at once.
void set_no_delay(int socket) noexcept;
// Lets the kernel notice within `limit` that the peer's host is gone, whatever the peer's process does.
// `user_timeout`: also when data is on its way; never for connections that carry data, where it would fire
// on a peer that is merely busy.
void watch_peer(int socket, std::chrono::milliseconds limit, bool user_timeout) noexcept;
void unwatch_peer(int socket) noexcept;

// Sends what fits and closes without cutting off what was sent.
void close_gently(Descriptor descriptor) noexcept;

// Raises the soft limit of descriptors to the hard one.
void raise_descriptor_limit() noexcept;

}  // namespace weft::core
