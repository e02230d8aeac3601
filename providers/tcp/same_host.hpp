// Connections that never leave this host.
#pragma once

namespace weft::tcp {

// True when both ends of the connected socket are addresses of this host.
[[nodiscard]] bool stays_on_this_host(int socket) noexcept;

// Takes the pacing off a connection that stays on this host. BBR spaces packets out by what it thinks the
// path can carry; where there is no path that makes transfers several times slower and spares nobody
// anything.
void stop_pacing_on_this_host(int socket) noexcept;

}  // namespace weft::tcp
