// A completion queue that is in no hurry: one entry per poll, late, and now and then a wake-up for nothing.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "decorators/common/objects.hpp"
#include "dice.hpp"

namespace weft::strict {

class StrictContext;

class StrictQueue final : public decorator::CompletionQueue {
 public:
  StrictQueue(StrictContext& context, provider::QueueEvents& events)
      : decorator::CompletionQueue(events), context_(context) {}

  std::size_t poll(Completion* out, std::size_t room) noexcept override;
  [[nodiscard]] bool arm() noexcept override;

 private:
  using Clock = std::chrono::steady_clock;

  StrictContext& context_;
  std::atomic<Clock::rep> not_before_{0};
  std::atomic<bool> may_wake_for_nothing_{true};
};

}  // namespace weft::strict
