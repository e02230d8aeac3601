// What is particular to one fabric under libfabric, all of it: everything else treats them alike.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "weft/attributes.hpp"

namespace weft::ofi {

struct Fabric {
  std::string_view name;     // what follows the colon in WEFT_PROVIDER
  const char* library_name;  // libfabric's provider
  int priority = 10;         // in automatic choice, see FabricReport
  bool by_address = false;   // endpoints are bound to an internet address; else to what the library chooses
  bool by_device = false;    // of those addresses only the ones of its devices, and of this host's loopback
  bool named_here = false;   // endpoints are named by this side
  bool manual = false;       // asked to move on in our calls only, by no thread of its own
  bool waits = false;        // its completion queue has a descriptor to sleep on
  bool rings = false;        // which costs those who never sleep too much: sleepers are rung for all the same
  bool at_once = false;      // a message is there when the call that sent it returns
  bool forgets = false;      // a peer can be taken out of its address vector while it may still send
  bool empties = false;      // what has arrived is taken before an endpoint closes: it crashes on it
  bool maps_once =
      false;  // a peer in the same process is used where its owner mapped it, without a hold on it
  std::uint32_t message_size;     // largest message
  std::uint32_t inject_size = 0;  // up to here the fabric copies at once
  std::uint32_t swift_size = 0;   // up to here with the least work, the header being a tag; 0: no tags
  std::uint32_t offer_from = 0;   // from here on the target fetches payload; 0: never
  std::uint32_t fetch_size = 0;   // by reads of this size at most; 0: across processes, by the kernel
  // Entries of its completion queue, and of each direction of an endpoint; 0: its own.
  std::uint32_t queue_size = 0;
  Trust trust = Trust::connected_peers;
  const char* trust_text;
  const char* advice = "";  // where an endpoint cannot be enabled
  // Of the environment, which libfabric reads when an endpoint is made, there being no call for it: "1"
  // unless the user has set it. Null: none.
  const char* setting = nullptr;
};

[[nodiscard]] std::span<const Fabric> fabrics() noexcept;
// Null when there is none of that name.
[[nodiscard]] const Fabric* find_fabric(std::string_view name) noexcept;

}  // namespace weft::ofi
