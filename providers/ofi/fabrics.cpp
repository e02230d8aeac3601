#include "fabrics.hpp"

#include <algorithm>
#include <array>

namespace weft::ofi {

namespace {

constexpr std::uint32_t kib = 1024;
// What ofi_rxm sends at once. Above it, it lets later messages overtake, as libfabric's order of completions
// allows.
constexpr std::uint32_t rxm_eager = 16 * kib - 256;

// What it sends over tcp without a completion of its own: 128 bytes less its header, which it counts even
// where it sends none.
constexpr std::uint32_t rxm_swift = 64;

constexpr auto open_port =
    "Nothing is encrypted, and peers are not authenticated. libfabric's own wire code answers whoever "
    "reaches its "
    "port, before weft knows of them.";
constexpr auto same_user_only =
    "Nothing is encrypted, and peers are not authenticated: memory is shared with every process of the same "
    "user that asks, and the queue in it trusts them.";
constexpr auto hardware =
    "Nothing is encrypted unless the fabric does it. Whoever may inject packets into the fabric is believed.";

// tcp and verbs are connections made into datagrams by libfabric's ofi_rxm. The last four were never run
// here; their values are from libfabric's documentation, and automatic choice does not take them.
constexpr std::array table = {
    // name, in libfabric, priority, by address, named, manual, waits, forgets, maps once, message, inject,
    // swift, offer, queue, trust
    Fabric{"tcp", "tcp;ofi_rxm", 90, true, false, true, true, true, false, rxm_eager, 4 * kib, rxm_swift, 0,
           0, Trust::whoever_reaches_the_port, open_port},
    Fabric{"shm", "shm", 80, false, true, false, false, false, true, 64 * kib, 4 * kib, 0, 16 * kib, 0,
           Trust::same_user, same_user_only},
    // rxm sizes the hardware's queue for the peers it expects, 256 unless told, times the size of an
    // endpoint.
    Fabric{"verbs", "verbs;ofi_rxm", 95, true, false, false, true, true, false, rxm_eager, kib, 0, 0, 64,
           Trust::whoever_reaches_the_port, open_port},
    Fabric{"efa", "efa", 10, false, false, true, false, false, false, 8 * kib, 0, 0, 0, 0,
           Trust::connected_peers, hardware},
    Fabric{"cxi", "cxi", 10, false, false, true, true, false, false, 64 * kib, 0, 0, 0, 0,
           Trust::connected_peers, hardware},
    Fabric{"psm3", "psm3", 10, false, false, false, false, false, false, 64 * kib, 0, 0, 0, 0,
           Trust::connected_peers, hardware},
    Fabric{"opx", "opx", 10, false, false, false, false, false, false, 8 * kib, 0, 0, 0, 0,
           Trust::connected_peers, hardware},
};

}  // namespace

std::span<const Fabric> fabrics() noexcept { return table; }

const Fabric* find_fabric(std::string_view name) noexcept {
  const auto* const found =
      std::find_if(table.begin(), table.end(), [name](const Fabric& fabric) { return fabric.name == name; });
  return found == table.end() ? nullptr : found;
}

}  // namespace weft::ofi
