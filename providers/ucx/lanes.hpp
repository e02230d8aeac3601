// What follows the colon in `ucx:NAME`: which of UCX's transports ("lanes") a context may use. Before 1.14 an
// endpoint of UCX cannot be asked what it uses, so lists that leave it no choice of kind prove it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/attributes.hpp"

namespace weft::ucx {

// How two workers meet. By address each makes its end alone, from what the control connection brought of the
// other. That does not work over RoCE without a switch of its own (1.13, tried on Soft-RoCE: it hangs); there
// one side connects through rdma_cm to where the other's worker listens.
enum class WireUp : std::uint8_t { address, listener };

struct Lanes {
  const char* name;        // empty: UCX chooses among all of them
  const char* transports;  // as UCX_TLS takes them
  int priority;
  Trust trust;
  const char* trust_text;
  std::size_t message_size;  // what UCX moves in one piece, with the settings below
  std::size_t pieces_from;   // from here on further messages cost less than gathering their bytes
  WireUp wire_up;
};

// Every list there is; the last one is that of plain `ucx`.
[[nodiscard]] std::span<const Lanes> all_lanes() noexcept;

// Throws Error(not_found) with the names that exist.
[[nodiscard]] const Lanes& lanes_named(std::string_view name);

// What is left of the lanes when the user's UCX_TLS (empty: unset) is respected. Aliases ("shm", "rc", "all")
// and exclusion ("^tcp") are understood. Empty when nothing is left.
[[nodiscard]] std::string restricted(const Lanes& lanes, std::string_view user_list);

[[nodiscard]] std::vector<std::string> split_list(std::string_view list);
[[nodiscard]] std::string join_list(const std::vector<std::string>& items, std::string_view separator);

}  // namespace weft::ucx
