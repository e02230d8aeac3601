// Where finished operations and reports are taken from.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "weft/completion.hpp"
#include "weft/data_path.hpp"
#include "weft/export.hpp"

namespace weft {

namespace core {
class QueueState;
struct Opener;
}  // namespace core

struct CompletionQueueOptions {
  // Signalled operations and receives that can be outstanding or untaken at once, over all endpoints of the
  // queue; one more is refused with `again` (CMP-6). 1 to 2^20.
  std::uint32_t capacity = 256;
};

// A handle; copies name the same queue. It never overruns (CMP-6). Polling it drives the endpoints attached
// to it (PRG-1). Thread rules: as the context's thread mode; wake() may be called from any thread in both.
class WEFT_API CompletionQueue {
 public:
  CompletionQueue() noexcept = default;

  // Takes what is there, at most entries.size(), never blocks, never allocates. An empty span still drives
  // the endpoints.
  Polled poll(std::span<Completion> entries) noexcept;

  // As poll, but sleeps until there is something, the time has passed or wake() was called (PRG-3). A
  // negative timeout waits for ever. Interrupted calls are resumed (ERR-6).
  Polled wait(std::span<Completion> entries, std::chrono::nanoseconds timeout) noexcept;

  // Wakes one waiter; if nobody waits, the next wait returns at once. Any thread; not from a signal handler.
  void wake() noexcept;

  // The descriptor for poll(2), select(2), epoll(7); readable once something happened after arm() agreed. It
  // belongs to the queue: never read, write or close it (PRG-4). Throws Error(resource_limit) when none can
  // be made.
  [[nodiscard]] int descriptor() const;

  // True: nothing is there, and any later completion makes the descriptor readable. False: something is
  // there, or may be; poll first. May be called again at any time (PRG-4).
  [[nodiscard]] bool arm() noexcept;

  [[nodiscard]] std::uint32_t capacity() const noexcept;
  [[nodiscard]] explicit operator bool() const noexcept { return state_ != nullptr; }
  [[nodiscard]] bool operator==(const CompletionQueue&) const noexcept = default;

 private:
  friend class Context;
  friend struct core::Opener;
  explicit CompletionQueue(std::shared_ptr<core::QueueState> state) noexcept;
  Polled poll_with_care(std::span<Completion> entries) noexcept;

  core::Aside<core::PollPath> path_;
  std::shared_ptr<core::QueueState> state_;
};

inline Polled CompletionQueue::poll(std::span<Completion> entries) noexcept {
  core::PollPath* const path = path_.get();
  if (path == nullptr || path->needs_care.load(std::memory_order_relaxed)) [[unlikely]]
    return poll_with_care(entries);
  const std::size_t count = path->provider->poll(entries.data(), entries.size());
  if (count > 0) return {entries.data(), count, Polled::Reason::completions};
  return {entries.data(), 0, path->is_usable() ? Polled::Reason::empty : Polled::Reason::failed};
}

}  // namespace weft
