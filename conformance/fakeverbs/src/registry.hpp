// Who is on a network: a small file in /dev/shm with a place for each process. A segment itself has no name:
// it is an anonymous file, which others open by the owner's descriptor, so that a killed process leaves
// nothing behind.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "liveness.hpp"

namespace fakeverbs {

struct Member {
  Incarnation process;
  std::uint32_t descriptor = 0;  // of its segment, in that process
  std::uint32_t padding = 0;
};

// The slot taken for this process; none, and errno, when there is none left.
[[nodiscard]] std::optional<std::uint32_t> join(const std::string& network, std::uint32_t descriptor);
void leave(const std::string& network, std::uint32_t slot);
// The living process in that slot.
[[nodiscard]] std::optional<Member> find_member(const std::string& network, std::uint32_t slot);
// False only when it is certain that nobody lives there.
[[nodiscard]] bool slot_may_be_alive(const std::string& network, std::uint32_t slot);

}  // namespace fakeverbs
