// A receive queue shared by any number of endpoints (RCQ-1).
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "weft/completion_queue.hpp"
#include "weft/data_path.hpp"
#include "weft/export.hpp"
#include "weft/work_request.hpp"

namespace weft {

namespace core {
class ReceiveQueueState;
}

struct ReceiveQueueOptions {
  CompletionQueue queue{};       // receive completions and endpoint_ended of its endpoints go here; required
  std::uint32_t depth = 1024;    // receives that can be posted at once
  std::uint64_t user_value = 0;  // returned in low_water reports
};

// A handle; copies name the same queue. Thread rules: as the context's thread mode.
class WEFT_API ReceiveQueue {
 public:
  ReceiveQueue() noexcept = default;

  // Posts one receive, or a batch in one call (OPS-1, OPS-2). `again` when `depth` are posted or the
  // completion queue has no room.
  Status receive(const Segment& segment, std::uint64_t context) noexcept;
  PostResult post_receives(std::span<const ReceiveRequest> requests) noexcept;

  // Reports `low_water` once each time the number of posted receives falls below `mark` (RCQ-2). 0 turns it
  // off.
  void set_low_water(std::uint32_t mark);

  [[nodiscard]] explicit operator bool() const noexcept { return state_ != nullptr; }

 private:
  friend class Context;
  friend struct core::Opener;
  explicit ReceiveQueue(std::shared_ptr<core::ReceiveQueueState> state) noexcept;

  core::Aside<provider::ReceiveQueue> path_;
  std::shared_ptr<core::ReceiveQueueState> state_;
};

inline PostResult ReceiveQueue::post_receives(std::span<const ReceiveRequest> requests) noexcept {
  if (path_.get() == nullptr) [[unlikely]]
    return {Status::not_connected, 0};
  return path_.get()->post(requests.data(), requests.size());
}

inline Status ReceiveQueue::receive(const Segment& segment, std::uint64_t context) noexcept {
  const ReceiveRequest request{.context = context, .segments = {&segment, 1}};
  return post_receives({&request, 1}).status;
}

}  // namespace weft
