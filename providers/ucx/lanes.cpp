#include "lanes.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "weft/status.hpp"

namespace weft::ucx {

namespace {

constexpr auto tcp_text =
    "UCX's own TCP port copies what arrives to whatever address the sender names, before weft sees any of "
    "it: "
    "whoever can reach the port can write into this process. Nothing is encrypted or authenticated. Use it "
    "only where everybody who reaches the port is trusted.";
constexpr auto shm_text =
    "UCX's shared memory is written to by processes of the same user, which must be trusted: they write into "
    "each other's queues. Nothing is encrypted or authenticated.";

constexpr auto rc_text =
    "UCX takes apart what a stranger sends to its rdma_cm port before weft sees any of it, and ends the "
    "process over some of it; keys of RDMA hardware have 32 bits, so a peer that is connected could guess "
    "one. Nothing is encrypted or authenticated. Use it only where everybody who reaches the port is "
    "trusted.";

// Only transports that report the failure of a peer: self does not.
constexpr std::size_t tcp_message = std::size_t{64} * 1024;
constexpr std::size_t shm_message = 8192;
constexpr std::size_t shm_pieces = 4096;
constexpr std::size_t rc_message = 8192;  // with UCX's headers one packet of rc, which has 8256 bytes
constexpr std::size_t no_pieces = std::numeric_limits<std::uint32_t>::max();  // each is a system call

constexpr std::array lane_lists{
    Lanes{"tcp", "tcp", 150, Trust::whoever_reaches_the_port, tcp_text, tcp_message, no_pieces,
          WireUp::address},
    Lanes{"shm", "posix,sysv,cma", 400, Trust::same_user, shm_text, shm_message, shm_pieces, WireUp::address},
    // Behind tcp, whatever the device, until it has been tried on an adapter.
    Lanes{"rc", "rc_verbs,rc_mlx5", 90, Trust::whoever_reaches_the_port, rc_text, rc_message, no_pieces,
          WireUp::listener},
    Lanes{"", "posix,sysv,cma,tcp", 100, Trust::whoever_reaches_the_port, tcp_text, shm_message, no_pieces,
          WireUp::address},
};

struct Alias {
  std::string_view name;
  std::string_view transport;
};

// As UCX's documentation of UCX_TLS has them.
constexpr std::array aliases{
    Alias{"all", "tcp"},      Alias{"all", "posix"},   Alias{"all", "sysv"},      Alias{"all", "cma"},
    Alias{"shm", "posix"},    Alias{"shm", "sysv"},    Alias{"shm", "cma"},       Alias{"sm", "posix"},
    Alias{"sm", "sysv"},      Alias{"sm", "cma"},      Alias{"mm", "posix"},      Alias{"mm", "sysv"},
    Alias{"all", "rc_verbs"}, Alias{"rc", "rc_verbs"}, Alias{"rc_v", "rc_verbs"}, Alias{"ib", "rc_verbs"},
    Alias{"all", "rc_mlx5"},  Alias{"rc", "rc_mlx5"},  Alias{"rc_x", "rc_mlx5"},  Alias{"ib", "rc_mlx5"},
};

bool names(const std::vector<std::string>& list, const std::string& transport) {
  const auto has = [&list](std::string_view name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  if (has(transport)) return true;
  return std::any_of(aliases.begin(), aliases.end(),
                     [&](const Alias& alias) { return alias.transport == transport && has(alias.name); });
}

}  // namespace

std::span<const Lanes> all_lanes() noexcept { return lane_lists; }

const Lanes& lanes_named(std::string_view name) {
  for (const Lanes& lanes : lane_lists)
    if (lanes.name == name) return lanes;
  std::vector<std::string> known;
  for (const Lanes& lanes : lane_lists)
    if (*lanes.name != '\0') known.push_back("ucx:" + std::string(lanes.name));
  throw Error(Status::not_found, "UCX has no lanes called '" + std::string(name) + "' here; there are " +
                                     join_list(known, ", ") +
                                     ", and plain ucx for what UCX itself chooses among them");
}

std::string restricted(const Lanes& lanes, std::string_view user_list) {
  const bool excludes = user_list.starts_with('^');
  const std::vector<std::string> named = split_list(excludes ? user_list.substr(1) : user_list);
  std::vector<std::string> left;
  for (std::string& transport : split_list(lanes.transports)) {
    if (user_list.empty() || names(named, transport) != excludes) left.push_back(std::move(transport));
  }
  return join_list(left, ",");
}

std::vector<std::string> split_list(std::string_view list) {
  std::vector<std::string> items;
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    if (comma != 0) items.emplace_back(list.substr(0, comma));
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
  }
  return items;
}

std::string join_list(const std::vector<std::string>& items, std::string_view separator) {
  std::string text;
  for (const std::string& item : items) {
    if (!text.empty()) text += separator;
    text += item;
  }
  return text;
}

}  // namespace weft::ucx
