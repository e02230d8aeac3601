// Which process this is, and whether another still lives.
#pragma once

#include <cstdint>

namespace fakeverbs {

// A process id together with the time the process began, since ids are used again.
struct Incarnation {
  std::uint32_t pid = 0;
  std::uint64_t start_time = 0;
  friend bool operator==(const Incarnation&, const Incarnation&) = default;
};

[[nodiscard]] Incarnation own_incarnation();
// A process that has died and was not waited for yet is dead.
[[nodiscard]] bool is_alive(const Incarnation& process);
// All of it is stopped, as by SIGSTOP.
[[nodiscard]] bool is_stopped(std::uint32_t pid);

}  // namespace fakeverbs
