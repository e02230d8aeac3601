#include "weft/completion_queue.hpp"

#include "objects/queue_core.hpp"

namespace weft {

CompletionQueue::CompletionQueue(std::shared_ptr<core::QueueState> state) noexcept
    : path_(state != nullptr ? &state->core().poll_path() : nullptr), state_(std::move(state)) {}

Polled CompletionQueue::poll_with_care(std::span<Completion> entries) noexcept {
  if (state_ == nullptr) return {entries.data(), 0, Polled::Reason::failed};
  core::QueueCore& core = state_->core();
  const std::size_t count = core.take(entries);
  if (count > 0) return {entries.data(), count, Polled::Reason::completions};
  return {entries.data(), 0, core.is_usable() ? Polled::Reason::empty : Polled::Reason::failed};
}

Polled CompletionQueue::wait(std::span<Completion> entries, std::chrono::nanoseconds timeout) noexcept {
  if (state_ == nullptr) return {entries.data(), 0, Polled::Reason::failed};
  return state_->core().wait(entries, timeout);
}

void CompletionQueue::wake() noexcept {
  if (state_ != nullptr && state_->core().is_usable()) state_->core().wake();
}

int CompletionQueue::descriptor() const {
  if (state_ == nullptr) throw Error(Status::invalid_argument, "this CompletionQueue names no queue");
  state_->core().context().check_usable("make a queue's descriptor");
  return state_->core().descriptor();
}

bool CompletionQueue::arm() noexcept { return state_ != nullptr && state_->core().arm(); }

std::uint32_t CompletionQueue::capacity() const noexcept {
  return state_ == nullptr ? 0 : state_->core().capacity();
}

}  // namespace weft
