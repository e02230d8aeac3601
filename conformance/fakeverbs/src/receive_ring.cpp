#include "receive_ring.hpp"

#include <atomic>

namespace fakeverbs {
namespace {

// Another may overwrite an entry while it is read, when it was taken meanwhile; then it is read in vain.
// Words, each read and written whole, keep that within the language.
template <class Word>
Word read(const Word& word) {
  return std::atomic_ref(const_cast<Word&>(word)).load(std::memory_order_relaxed);
}
template <class Word>
void write(Word& word, Word value) {
  std::atomic_ref(word).store(value, std::memory_order_relaxed);
}

ibv_sge* segments_of(SharedReceive& entry) { return reinterpret_cast<ibv_sge*>(&entry + 1); }

}  // namespace

std::size_t ReceiveRing::bytes_for(std::uint32_t entries, std::uint32_t segments) {
  return static_cast<std::size_t>(entries) * (sizeof(SharedReceive) + segments * sizeof(ibv_sge));
}

void ReceiveRing::prepare(std::uint64_t entries_offset, std::uint32_t entries, std::uint32_t segments) {
  queue_->head.store(0);
  queue_->tail.store(0);
  queue_->entries = entries_offset;
  queue_->capacity = entries;
  queue_->stride = static_cast<std::uint32_t>(sizeof(SharedReceive) + segments * sizeof(ibv_sge));
  queue_->limit.store(0);
  queue_->waited.store(0);
  queue_->limit_reached.store(0);
}

void ReceiveRing::add(const ibv_recv_wr& request) {
  const std::uint64_t position = queue_->tail.load(std::memory_order_relaxed);
  SharedReceive& entry = at(position);
  write(entry.wr_id, request.wr_id);
  write(entry.count, static_cast<std::uint32_t>(request.num_sge));
  ibv_sge* const segments = segments_of(entry);
  for (int index = 0; index < request.num_sge; ++index) {
    write(segments[index].addr, request.sg_list[index].addr);
    write(segments[index].length, request.sg_list[index].length);
    write(segments[index].lkey, request.sg_list[index].lkey);
  }
  queue_->tail.store(position + 1);
}

bool ReceiveRing::peek(Receive& receive) const {
  while (true) {
    const std::uint64_t head = queue_->head.load();
    if (head == queue_->tail.load()) return false;
    SharedReceive& entry = at(head);
    receive.position = head;
    receive.wr_id = read(entry.wr_id);
    const std::uint32_t count = read(entry.count);
    receive.segments.clear();
    const ibv_sge* const segments = segments_of(entry);
    for (std::uint32_t index = 0; index < count; ++index) {
      receive.segments.push_back(
          {read(segments[index].addr), read(segments[index].length), read(segments[index].lkey)});
    }
    if (queue_->head.load() == head) return true;
  }
}

bool ReceiveRing::take(const Receive& receive) const {
  std::uint64_t expected = receive.position;
  return queue_->head.compare_exchange_strong(expected, receive.position + 1);
}

}  // namespace fakeverbs
