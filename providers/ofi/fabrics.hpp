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
  int priority;              // in automatic choice, see FabricReport
  bool by_address;           // endpoints are bound to an internet address; else to what the library chooses
  bool named_here;           // endpoints are named by this side
  bool manual;               // asked to move on in our calls only, by no thread of its own
  bool waits;                // its completion queue has a descriptor to sleep on
  bool forgets;              // a peer can be taken out of its address vector while it may still send
  bool maps_once;  // a peer in the same process is used where its owner mapped it, without a hold on it
  std::uint32_t message_size;  // largest message
  std::uint32_t inject_size;   // up to here the fabric copies at once
  std::uint32_t swift_size;  // up to here it does so with the least work, if the header is a tag; 0: no tags
  std::uint32_t offer_from;  // from here on the target fetches payload across processes; 0: never
  std::uint32_t
      queue_size;  // entries of its completion queue, and of each direction of an endpoint; 0: its own
  Trust trust;
  const char* trust_text;
};

[[nodiscard]] std::span<const Fabric> fabrics() noexcept;
// Null when there is none of that name.
[[nodiscard]] const Fabric* find_fabric(std::string_view name) noexcept;

}  // namespace weft::ofi
