// The fault plan at work: counts, draws and answers whether now is the time.
#pragma once

#include <atomic>
#include <cstdint>

#include "fault_plan.hpp"

namespace fakeverbs {

// The same seed gives the same answers to the same sequence of questions.
class Trigger {
 public:
  Trigger(const Chance& chance, std::uint64_t seed) : chance_(chance), seed_(seed) {}
  [[nodiscard]] bool strikes() { return chance_.possible() && decide(); }

 private:
  [[nodiscard]] bool decide();
  Chance chance_;
  std::uint64_t seed_;
  std::atomic<std::uint64_t> count_{0};
};

// A well-mixed number from a seed and a position.
[[nodiscard]] std::uint64_t mix(std::uint64_t seed, std::uint64_t position);

struct Faults {
  explicit Faults(const FaultPlan& plan);
  FaultPlan plan;
  Trigger post_send_enomem;
  Trigger post_receive_enomem;
  Trigger register_enomem;
  Trigger create_enomem;
  Trigger delay;
  Trigger fatal;
  Trigger port_down;
  Trigger lost;
  std::atomic<bool> is_lost{false};
};

// Of this process, counted from its start.
[[nodiscard]] Faults& faults();

}  // namespace fakeverbs
