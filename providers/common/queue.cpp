#include "queue.hpp"

#include <algorithm>
#include <bit>

namespace weft::engine {

Queue::Queue(ThreadMode mode, std::uint32_t capacity, provider::QueueEvents& events)
    : gate_(mode),
      events_(events),
      ring_(std::make_unique<Completion[]>(std::bit_ceil(capacity))),
      mask_(std::bit_ceil(capacity) - 1),
      capacity_(capacity) {}

bool Queue::reserve_shared() noexcept {
  const std::lock_guard lock(ring_lock_);
  if (used_ >= capacity_) return false;
  ++used_;
  return true;
}

void Queue::release_shared(std::uint32_t count) noexcept {
  const std::lock_guard lock(ring_lock_);
  used_ -= count;
}

void Queue::add(Reporter& reporter) noexcept {
  const MaybeLock lock(*this);
  if (reporter.queued_) return;
  reporter.queued_ = true;
  reporter.after_ = pushed_;
  reporter.next_ = nullptr;
  (reporters_ == nullptr ? reporters_ : last_reporter_->next_) = &reporter;
  last_reporter_ = &reporter;
  if (armed_.load(std::memory_order_relaxed)) signal();
}

void Queue::remove(Reporter& reporter) noexcept {
  const MaybeLock lock(*this);
  if (!reporter.queued_) return;
  Reporter* before = nullptr;
  for (Reporter* at = reporters_; at != &reporter; at = at->next_) before = at;
  (before == nullptr ? reporters_ : before->next_) = reporter.next_;
  if (last_reporter_ == &reporter) last_reporter_ = before;
  reporter.queued_ = false;
}

std::size_t Queue::take_entries(Completion* out, std::size_t room) noexcept {
  const MaybeLock lock(*this);
  std::size_t count = 0;
  while (count < room) {
    std::uint64_t limit = pushed_ - popped_;
    if (reporters_ != nullptr) [[unlikely]] {
      Reporter& first = *reporters_;
      if (first.after_ <= popped_) {
        std::uint32_t released = 0;
        count += first.hand_out(out + count, room - count, released);
        used_ -= released;
        if (first.has_more()) break;  // the caller's array is full
        reporters_ = first.next_;
        first.queued_ = false;
        continue;
      }
      limit = first.after_ - popped_;
    }
    const std::uint64_t wanted = std::min<std::uint64_t>(limit, room - count);
    if (wanted == 0) break;
    for (std::uint64_t i = 0; i < wanted; ++i) out[count + i] = ring_[(popped_ + i) & mask_];
    popped_ += wanted;
    used_ -= static_cast<std::uint32_t>(wanted);
    count += wanted;
  }
  // The next entry goes where the last ones were, which the processor still has at hand; around a ring for
  // many endpoints it would meet a cold place each time.
  if (pushed_ == popped_ && reporters_ == nullptr) {
    pushed_ = 0;
    popped_ = 0;
  }
  return count;
}

void Queue::drop_entries_of(std::uint32_t endpoint_id) noexcept {
  const MaybeLock lock(*this);
  // What is kept closes ranks towards the head; a reporter moves up by what was dropped before its place.
  std::uint64_t kept = popped_;
  std::uint64_t dropped = 0;
  Reporter* reporter = reporters_;
  for (std::uint64_t at = popped_; at != pushed_; ++at) {
    while (reporter != nullptr && reporter->after_ <= at) {
      reporter->after_ -= dropped;
      reporter = reporter->next_;
    }
    const Completion& entry = ring_[at & mask_];
    if (entry.endpoint_id == endpoint_id && entry.operation != Operation::connection_request) {
      ++dropped;
      continue;
    }
    ring_[kept++ & mask_] = entry;
  }
  for (; reporter != nullptr; reporter = reporter->next_) reporter->after_ -= dropped;
  pushed_ = kept;
  used_ -= static_cast<std::uint32_t>(dropped);
}

void Queue::resume_signals() noexcept {
  const MaybeLock lock(*this);
  if (has_entries()) {
    events_.readable();
  } else {
    armed_.store(true, std::memory_order_relaxed);
  }
}

bool Queue::arm_ring() noexcept {
  const MaybeLock lock(*this);
  if (has_entries()) return false;
  armed_.store(true, std::memory_order_relaxed);
  return true;
}

}  // namespace weft::engine
