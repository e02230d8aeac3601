// Posts the operations of one side, batch after batch, the lanes taking turns.
#pragma once

#include <cstdint>
#include <vector>
#include <weft/weft.hpp>

#include "site.hpp"

namespace perf::remote {

class Sender {
 public:
  explicit Sender(Site& site);

  /// Whether the lane whose turn it is has places for a batch.
  [[nodiscard]] bool has_room() const {
    const Lane& lane = site_.lanes()[turn_];
    return lane.posted - lane.completed + batch_ <= site_.slots();
  }
  /// The next batch, on the lane whose turn it is. `signalled` asks for a completion whatever the rhythm.
  void post_batch(bool signalled);
  /// Takes what has come back, and with --check looks at it.
  void look_at_results();

  [[nodiscard]] std::uint32_t batch() const { return batch_; }
  [[nodiscard]] std::uint64_t batches() const { return batches_; }
  /// Whether everything posted is complete; only after a signalled batch on each lane.
  [[nodiscard]] bool is_idle() const;
  [[nodiscard]] bool is_last_complete() const {
    const Lane& lane = site_.lanes()[turn_ == 0 ? row_.endpoints - 1 : turn_ - 1];
    return lane.completed == lane.posted;
  }
  /// Makes all that was left in the peer's memory visible to its processor, see OPS-11.
  void flush();

 private:
  void fill(weft::WorkRequest* request, std::uint32_t lane_index, const Lane& lane, std::uint64_t number,
            weft::Segment* segment);
  void prepare_bytes(std::uint32_t lane_index, std::uint64_t number);
  void look_at(std::uint32_t lane_index, std::uint64_t number);

  Site& site_;
  const Row& row_;
  std::uint32_t batch_;
  std::uint32_t per_operation_;
  std::uint32_t signal_every_;
  std::uint32_t turn_ = 0;
  std::uint64_t batches_ = 0;
  std::vector<std::uint64_t> unsignalled_;  // per lane, since its last signal
  std::vector<weft::WorkRequest> requests_;
  std::vector<weft::Segment> segments_;
};

/// How many messages a lane has carried once all lanes together have carried so many batches, by turns.
[[nodiscard]] std::uint64_t messages_of_lane(const Row& row, std::uint64_t batches, std::uint32_t lane);

/// Looks at what the peer left in this side's memory. Throws std::runtime_error for a wrong byte.
void check_left_bytes(Site& site, std::uint64_t peer_batches);

}  // namespace perf::remote
