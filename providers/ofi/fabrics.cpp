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

// It sizes the device's completion queue for the peers it expects, times 256.
constexpr auto rxm_advice =
    "; where the device's completion queues are small, set FI_UNIVERSE_SIZE (16, say) before the program "
    "starts: libfabric makes them for that many peers, 1024 unless told";

// With receives of its own for each connection it crashes when it closes one on which a message has just
// arrived.
constexpr auto rxm_shared_receives = "FI_OFI_RXM_USE_SRX";

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
    Fabric{.name = "tcp",
           .library_name = "tcp;ofi_rxm",
           .priority = 90,
           .by_address = true,
           .manual = true,
           .waits = true,
           .rings = true,
           .forgets = true,
           .message_size = rxm_eager,
           .inject_size = 4 * kib,
           .swift_size = rxm_swift,
           .offer_from = 64 * kib,
           .fetch_size = 1024 * kib,
           .trust = Trust::whoever_reaches_the_port,
           .trust_text = open_port},
    Fabric{.name = "shm",
           .library_name = "shm",
           .priority = 80,
           .named_here = true,
           .at_once = true,
           .maps_once = true,
           .message_size = 64 * kib,
           .inject_size = 4 * kib,
           .offer_from = 16 * kib,
           .trust = Trust::same_user,
           .trust_text = same_user_only},
    Fabric{.name = "verbs",
           .library_name = "verbs;ofi_rxm",
           .priority = 95,
           .by_address = true,
           .by_device = true,
           .waits = true,
           .forgets = true,
           .empties = true,
           .message_size = rxm_eager,
           .inject_size = kib,
           .queue_size = 64,
           .trust = Trust::whoever_reaches_the_port,
           .trust_text = open_port,
           .advice = rxm_advice,
           .setting = rxm_shared_receives},
    Fabric{.name = "efa",
           .library_name = "efa",
           .manual = true,
           .message_size = 8 * kib,
           .trust_text = hardware},
    Fabric{.name = "cxi",
           .library_name = "cxi",
           .manual = true,
           .waits = true,
           .message_size = 64 * kib,
           .trust_text = hardware},
    Fabric{.name = "psm3", .library_name = "psm3", .message_size = 64 * kib, .trust_text = hardware},
    Fabric{.name = "opx", .library_name = "opx", .message_size = 8 * kib, .trust_text = hardware},
};

}  // namespace

std::span<const Fabric> fabrics() noexcept { return table; }

const Fabric* find_fabric(std::string_view name) noexcept {
  const auto* const found =
      std::find_if(table.begin(), table.end(), [name](const Fabric& fabric) { return fabric.name == name; });
  return found == table.end() ? nullptr : found;
}

}  // namespace weft::ofi
