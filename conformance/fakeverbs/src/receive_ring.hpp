// The ring of posted receives: its owner adds, whoever carries a message in takes.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <vector>

#include "segment.hpp"

namespace fakeverbs {

struct Receive {
  std::uint64_t position = 0;
  std::uint64_t wr_id = 0;
  std::vector<ibv_sge> segments;  // kept by the caller, so that it allocates once
};

class ReceiveRing {
 public:
  ReceiveRing(const Segment& segment, std::uint64_t offset)
      : segment_(&segment), queue_(&segment.at<SharedReceiveQueue>(offset)) {}

  [[nodiscard]] static std::size_t bytes_for(std::uint32_t entries, std::uint32_t segments);
  void prepare(std::uint64_t entries_offset, std::uint32_t entries, std::uint32_t segments);

  [[nodiscard]] SharedReceiveQueue& shared() const { return *queue_; }
  [[nodiscard]] std::uint64_t size() const { return queue_->tail.load() - queue_->head.load(); }
  [[nodiscard]] bool full() const { return size() >= queue_->capacity; }
  void add(const ibv_recv_wr& request);  // not when full; one thread at a time
  // Reads the oldest without taking it.
  [[nodiscard]] bool peek(Receive& receive) const;
  // Takes what was read; false when another was faster.
  [[nodiscard]] bool take(const Receive& receive) const;
  void clear() { queue_->head.store(queue_->tail.load()); }

 private:
  [[nodiscard]] SharedReceive& at(std::uint64_t position) const {
    return segment_->at<SharedReceive>(queue_->entries + position % queue_->capacity * queue_->stride);
  }
  const Segment* segment_;
  SharedReceiveQueue* queue_;
};

}  // namespace fakeverbs
