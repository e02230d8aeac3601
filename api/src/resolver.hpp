// Looking names up without blocking the caller (CON-2).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "address.hpp"
#include "weft/status.hpp"

namespace weft::core {

struct Resolution {
  // ok; unreachable when the name has no address; resource_limit when no thread could be started.
  Status status = Status::ok;
  std::vector<SocketAddress> addresses;  // in the order to try: preferred first, families alternating
  std::string error;                     // why there are none, and what to do about it
};

// A numeric host needs no look-up: its address; nothing for a name. Throws as SocketAddress::from_numeric.
[[nodiscard]] std::optional<SocketAddress> numeric_address(const HostPort& target);

// Looks the host up and calls `answer` exactly once, unless `asker` is gone by then.
//   numeric host: from inside this call, no thread, no resolver
//   name:         from a short-lived thread, with no lock held
// `asker` is held while the answer is given, so that the answer may use it; make it a small object (a
// mailbox), because it may be destroyed by that thread. `answer` must not throw. At most resolver_threads
// look-ups run at once, the others wait their turn. Safe at process exit and in a forked child.
void resolve(const HostPort& target, std::weak_ptr<void> asker, std::function<void(Resolution)> answer);

inline constexpr unsigned resolver_threads = 8;

}  // namespace weft::core
