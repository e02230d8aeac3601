#include "faults.hpp"

#include "settings.hpp"

namespace fakeverbs {

std::uint64_t mix(std::uint64_t seed, std::uint64_t position) {
  std::uint64_t value = seed + (position + 1) * 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

bool Trigger::decide() {
  const std::uint64_t count = count_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (chance_.at != 0 && count == chance_.at) return true;
  if (chance_.every != 0 && count % chance_.every == 0) return true;
  constexpr double draws = 9007199254740992.0;  // 2^53
  return chance_.probability > 0 &&
         static_cast<double>(mix(seed_, count) >> 11) < chance_.probability * draws;
}

Faults::Faults(const FaultPlan& from)
    : plan(from),
      post_send_enomem(from.post_send_enomem, mix(from.seed, 1)),
      post_receive_enomem(from.post_receive_enomem, mix(from.seed, 2)),
      register_enomem(from.register_enomem, mix(from.seed, 3)),
      create_enomem(from.create_enomem, mix(from.seed, 4)),
      delay(from.delay, mix(from.seed, 5)),
      fatal(from.fatal, mix(from.seed, 6)),
      port_down(from.port_down, mix(from.seed, 7)),
      lost(from.lost, mix(from.seed, 8)) {}

Faults& faults() {
  static Faults* const faults = new Faults(settings().plan);
  return *faults;
}

}  // namespace fakeverbs
