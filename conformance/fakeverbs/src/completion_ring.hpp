// The ring behind a completion queue. Any process adds, only the owner takes, and nobody ever waits for
// anybody: a process that dies or is stopped while it adds holds up nobody who adds after it.
#pragma once

#include <cstdint>

#include "shared.hpp"

namespace fakeverbs {

// What a completion says, in private memory.
struct Completion {
  std::uint64_t wr_id = 0;
  std::uint64_t send_position = 0;
  std::uint32_t qp_num = 0;
  std::uint32_t status = 0;
  std::uint32_t opcode = 0;
  std::uint32_t byte_len = 0;
  std::uint32_t imm_data = 0;
  std::uint32_t wc_flags = 0;
  std::uint32_t src_qp = 0;
  bool solicited = false;
};

class CompletionRing {
 public:
  CompletionRing(SharedCompletionQueue& queue, SharedCompletion* entries)
      : queue_(&queue), entries_(entries) {}

  void prepare();
  // Adds for the process in `slot`; false when the ring is full.
  [[nodiscard]] bool add(std::uint32_t slot, const Completion& completion);
  // The owner's: the entry at `head`, if there is one.
  [[nodiscard]] bool peek(std::uint64_t head, Completion& completion);
  // The owner's: frees the entry at `head`.
  void free(std::uint64_t head) {
    at(head).stamp.store((head + queue_->capacity) << 16, std::memory_order_release);
  }
  // The owner's: frees the entry at `head` if somebody died while writing it.
  [[nodiscard]] bool skip_dead(std::uint64_t head);

 private:
  [[nodiscard]] SharedCompletion& at(std::uint64_t position) {
    return entries_[position & (queue_->capacity - 1)];
  }
  SharedCompletionQueue* queue_;
  SharedCompletion* entries_;
};

}  // namespace fakeverbs
