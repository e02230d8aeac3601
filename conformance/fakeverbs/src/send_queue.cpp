#include "send_queue.hpp"

namespace fakeverbs {

void SendQueue::prepare(std::uint32_t entries, std::uint32_t segments, std::uint32_t inline_bytes) {
  entries_ = entries;
  max_segments_ = segments == 0 ? 1 : segments;
  max_inline_ = inline_bytes == 0 ? 1 : inline_bytes;
  requests_.resize(entries_);
  segments_.resize(static_cast<std::size_t>(entries_) * max_segments_);
  inline_.resize(static_cast<std::size_t>(entries_) * max_inline_);
}

void SendQueue::clear() {
  begun_ = posted_;
  retired_.store(posted_);
}

SendRequest& SendQueue::place(std::uint64_t added) {
  const std::uint64_t position = posted_ + added;
  SendRequest& request = requests_[position % entries_];
  request.position = position;
  return request;
}

void SendQueue::retire(std::uint64_t up_to) {
  // Only the reader of the one completion queue comes here, and completions come in order, except after a
  // reset.
  if (up_to > retired_.load(std::memory_order_relaxed)) retired_.store(up_to, std::memory_order_relaxed);
}

}  // namespace fakeverbs
