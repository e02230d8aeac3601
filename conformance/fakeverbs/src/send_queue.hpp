// The ring of posted send requests, in private memory.
#pragma once

#include <infiniband/verbs.h>
#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace fakeverbs {

struct SendRequest {
  std::uint64_t wr_id;
  std::uint64_t remote_address;
  std::uint64_t compare_add;
  std::uint64_t swap;
  std::uint32_t opcode;
  std::uint32_t flags;
  std::uint32_t imm_data;
  std::uint32_t key;
  std::uint32_t segments;
  std::uint32_t inline_bytes;
  std::uint64_t position;
};

// A request's place is free again once its completion, or one posted later, was read from the completion
// queue; so it is with adapters, and so programs must count.
class SendQueue {
 public:
  void prepare(std::uint32_t entries, std::uint32_t segments, std::uint32_t inline_bytes);
  void clear();

  [[nodiscard]] bool full(std::uint64_t added) const {
    return posted_ + added - retired_.load(std::memory_order_relaxed) >= entries_;
  }
  // The place `added` behind what is posted.
  [[nodiscard]] SendRequest& place(std::uint64_t added);
  void post(std::uint64_t added) { posted_ += added; }
  [[nodiscard]] bool idle() const { return begun_ == posted_; }
  [[nodiscard]] const SendRequest& next() const { return requests_[begun_ % entries_]; }
  void advance() { ++begun_; }
  void retire(std::uint64_t up_to);

  [[nodiscard]] ibv_sge* segments_of(std::uint64_t position) {
    return &segments_[position % entries_ * max_segments_];
  }
  [[nodiscard]] std::byte* inline_of(std::uint64_t position) {
    return &inline_[position % entries_ * max_inline_];
  }

 private:
  std::uint32_t entries_ = 0;
  std::uint32_t max_segments_ = 0;
  std::uint32_t max_inline_ = 0;
  std::vector<SendRequest> requests_;
  std::vector<ibv_sge> segments_;
  std::vector<std::byte> inline_;
  std::uint64_t posted_ = 0;
  std::uint64_t begun_ = 0;
  std::atomic<std::uint64_t> retired_{0};
};

}  // namespace fakeverbs
