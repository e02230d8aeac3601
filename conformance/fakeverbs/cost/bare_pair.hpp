// A queue pair of bare verbs, connected to itself: enough for a device in null mode, which completes a
// request in the call that posts it.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace fakeverbs_cost {

template <auto destroy>
struct Destroyer {
  template <class Object>
  void operator()(Object* object) const noexcept {
    destroy(object);
  }
};

class BarePair {
 public:
  static constexpr std::uint32_t depth = 256;
  static constexpr std::uint32_t signal_every = 64;  // as weft does at this depth
  static constexpr std::size_t longest_chain = 32;
  static constexpr std::size_t poll_size = 16;

  enum class Work { send_8, write_8, write_4096 };

  BarePair();

  // Posts one request, as a program would that has prepared what it can.
  void post(Work work, bool signalled);
  void post_chain(Work work);  // of longest_chain requests, by one call
  // Takes at most `room` completions and looks at each.
  std::size_t poll(int room);

 private:
  void connect();
  void fill(ibv_send_wr& request, ibv_sge& place, Work work, bool signalled);

  std::vector<std::byte> memory_;
  std::unique_ptr<ibv_context, Destroyer<&ibv_close_device>> context_;
  std::unique_ptr<ibv_pd, Destroyer<&ibv_dealloc_pd>> domain_;
  std::unique_ptr<ibv_mr, Destroyer<&ibv_dereg_mr>> region_;
  std::unique_ptr<ibv_cq, Destroyer<&ibv_destroy_cq>> queue_;
  std::unique_ptr<ibv_qp, Destroyer<&ibv_destroy_qp>> pair_;
  std::array<ibv_send_wr, longest_chain> requests_{};
  std::array<ibv_sge, longest_chain> places_{};
  std::array<ibv_wc, poll_size> entries_{};
  std::uint64_t next_ = 0;
};

}  // namespace fakeverbs_cost
