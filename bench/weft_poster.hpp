// Posts sends or writes in batches over a ring of slots, never more outstanding than the depth.
#pragma once

#include <cstdint>
#include <vector>
#include <weft/weft.hpp>

#include "buffers.hpp"
#include "weft_link.hpp"
#include "workload.hpp"

namespace perf {

class BatchPoster {
 public:
  BatchPoster(WeftLink& link, const Workload& workload, weft::Operation operation);

  [[nodiscard]] std::uint32_t batch() const { return batch_; }

  /// Messages `number` to `number` + batch - 1, stamped, with one post call; waits for free slots first.
  void post_batch(std::uint64_t number);

  /// Waits until everything posted is complete.
  void drain() { link_.wait_completed(posted_); }

  /// Makes the next operation signalled whatever the rhythm, so that drain() after it can end.
  void signal_next_batch() { signal_next_ = true; }

 private:
  WeftLink& link_;
  std::uint32_t batch_;
  std::uint32_t depth_;
  std::uint32_t signal_every_;
  SlotBuffer source_;
  weft::MemoryRegion region_;
  weft::Operation operation_;
  std::vector<weft::Segment> segments_;      // one per slot
  std::vector<weft::WorkRequest> requests_;  // one per message of a batch
  std::uint64_t posted_ = 0;
  std::uint64_t unsignalled_ = 0;
  bool signal_next_ = false;
};

}  // namespace perf
