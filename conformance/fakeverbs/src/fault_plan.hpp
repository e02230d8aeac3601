// Which faults a process wants its devices to have. The grammar is in the README.
#pragma once

#include <cstdint>
#include <string_view>

namespace fakeverbs {

// Something that goes wrong at the Nth time, every Nth time, or with a probability.
struct Chance {
  std::uint64_t at = 0;     // the Nth time, counted from 1; 0 never
  std::uint64_t every = 0;  // each Nth time; 0 never
  double probability = 0;
  [[nodiscard]] bool possible() const { return at != 0 || every != 0 || probability > 0; }
};

struct Limits {
  std::uint32_t queue_entries = 16384;
  std::uint32_t completion_entries = 1u << 18;
  std::uint32_t segments = 30;
  std::uint32_t inline_bytes = 512;
  std::uint32_t reads = 16;
  std::uint32_t queue_pairs = 4096;
  std::uint32_t message_bytes = 1u << 30;
  bool atomics = true;
  bool extended = true;  // ibv_wr_* and ibv_cq_ex
};

struct FaultPlan {
  std::uint64_t seed = 1;
  Limits limits;
  bool garbage = false;  // fields that an error completion leaves undefined hold nonsense
  Chance post_send_enomem;
  Chance post_receive_enomem;
  Chance register_enomem;
  Chance create_enomem;  // queue pairs and completion queues
  Chance delay;          // a completion becomes visible late
  std::uint32_t delay_us = 1000;
  Chance fatal;                  // the device goes at this posted send
  Chance port_down;              // the port goes down at this posted send
  std::uint32_t port_up_ms = 0;  // and comes up again after this; 0 never
  Chance lost;                   // from this posted send on nothing of this process reaches anybody
  std::uint32_t destroy_ms = 0;  // how long destroying a queue pair takes
  std::uint32_t relaxed_ms =
      0;  // written bytes are seen with the next receive or behind a read, else this late
};

// Throws std::invalid_argument that says which word is wrong.
[[nodiscard]] FaultPlan parse_fault_plan(std::string_view text);

}  // namespace fakeverbs
