#include "completion_ring.hpp"

namespace fakeverbs {

void CompletionRing::prepare() {
  for (std::uint64_t position = 0; position < queue_->capacity; ++position) {
    at(position).stamp.store(position << 16, std::memory_order_relaxed);
  }
}

bool CompletionRing::add(std::uint32_t slot, const Completion& completion) {
  std::uint64_t position = queue_->tail.load(std::memory_order_acquire);
  while (true) {
    SharedCompletion& entry = at(position);
    std::uint64_t seen = position << 16;
    if (entry.stamp.compare_exchange_strong(seen, seen | (slot + 1), std::memory_order_acq_rel)) break;
    if (seen >> 16 < position) return false;
    // Taken by another: help it move the tail along, then try the next.
    if (queue_->tail.compare_exchange_strong(position, position + 1, std::memory_order_acq_rel)) ++position;
  }
  std::uint64_t expected = position;
  queue_->tail.compare_exchange_strong(expected, position + 1, std::memory_order_acq_rel);

  SharedCompletion& entry = at(position);
  entry.wr_id = completion.wr_id;
  entry.send_position = completion.send_position;
  entry.qp_num = completion.qp_num;
  entry.status = completion.status;
  entry.opcode = completion.opcode;
  entry.byte_len = completion.byte_len;
  entry.imm_data = completion.imm_data;
  entry.wc_flags = completion.wc_flags;
  entry.src_qp = completion.src_qp;
  entry.stamp.store(position << 16 | stamp_published, std::memory_order_seq_cst);
  return true;
}

bool CompletionRing::peek(std::uint64_t head, Completion& completion) {
  const SharedCompletion& entry = at(head);
  if (entry.stamp.load(std::memory_order_seq_cst) != (head << 16 | stamp_published)) return false;
  completion = {.wr_id = entry.wr_id,
                .send_position = entry.send_position,
                .qp_num = entry.qp_num,
                .status = entry.status,
                .opcode = entry.opcode,
                .byte_len = entry.byte_len,
                .imm_data = entry.imm_data,
                .wc_flags = entry.wc_flags,
                .src_qp = entry.src_qp};
  return true;
}

bool CompletionRing::skip_dead(std::uint64_t head) {
  const std::uint64_t stamp = at(head).stamp.load(std::memory_order_acquire);
  const std::uint64_t owner = stamp & 0xffff;
  if (stamp >> 16 != head || owner == 0 || owner == stamp_published) return false;
  if (process_is_alive(static_cast<std::uint32_t>(owner - 1))) return false;
  free(head);
  return true;
}

}  // namespace fakeverbs
