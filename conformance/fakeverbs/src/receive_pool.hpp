// Shared receive queues.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <mutex>

#include "context.hpp"
#include "receive_ring.hpp"

namespace fakeverbs {

class ReceivePool : public ibv_srq {
 public:
  [[nodiscard]] static ReceivePool* create(ibv_pd* domain,
                                           const ibv_srq_init_attr& attributes);  // null and errno
  ReceivePool(const ReceivePool&) = delete;
  ReceivePool& operator=(const ReceivePool&) = delete;
  ~ReceivePool();
  [[nodiscard]] static ReceivePool& of(ibv_srq* queue) { return static_cast<ReceivePool&>(*queue); }

  [[nodiscard]] std::uint64_t offset() const { return offset_; }
  [[nodiscard]] Context& owner() const { return context_; }
  int post(ibv_recv_wr* request, ibv_recv_wr** bad);
  int modify(const ibv_srq_attr& attributes, int mask);
  void query(ibv_srq_attr& attributes) const;
  void look();

  std::atomic<std::uint32_t> users{0};  // queue pairs
  std::uint32_t async_taken = 0;        // under ibv_srq.mutex

 private:
  ReceivePool(Context& context, std::uint64_t offset, std::size_t bytes);
  Context& context_;
  std::uint64_t offset_;
  std::size_t bytes_;
  ReceiveRing ring_;
  std::uint32_t max_segments_ = 0;
  std::mutex mutex_;
};

// Why a receive cannot be posted: 0 when it can.
[[nodiscard]] int check_receive(const ibv_recv_wr& request, std::uint32_t max_segments, bool full);

int destroy_receive_pool(ReceivePool& pool);

}  // namespace fakeverbs
