// One side of a connected queue pair, with its buffer and what the peer granted. The two sides of a
// measurement each hold one.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "exchange.hpp"
#include "link_memory.hpp"
#include "verbs_objects.hpp"
#include "work.hpp"

namespace weft::native {

class Link : public LinkMemory {
 public:
  using Device = native::Device;
  using Request = ibv_send_wr;
  using Place = ibv_sge;

  // Connects directly: numbers and GIDs go over `exchange`, as perftest does it. Both sides do the same.
  Link(Device& device, Exchange& exchange, const Work& work, bool initiator);

  // Fills in a request of `work.operation` for the slot of `sequence`, all but number, signal and chain.
  void prepare(Request& request, Place& segment, std::uint64_t sequence) const;
  // Whether it asks for a completion, which then has its number.
  void mark(Request& request, std::uint64_t number, bool signal) const {
    request.wr_id = number;
    request.send_flags = inline_flag_ | (signal ? static_cast<unsigned>(IBV_SEND_SIGNALED) : 0U);
  }
  // Makes a chain of them.
  static void join(std::span<Request> requests);

  // Posts all of a chain in one call.
  void post(std::span<Request> chain);
  // Hands `count` receives to the queue pair in one call, at most `receive_chunk`.
  void post_receives(std::uint32_t count);
  [[nodiscard]] std::uint32_t receive_depth() const { return receive_depth_; }

  // Polls; throws on an error completion. Returns the number of the last request known to be done, or 0.
  [[nodiscard]] std::uint64_t poll_sent() {
    const int count = poll(send_queue_.get());
    return count == 0 ? 0 : completions_[static_cast<std::size_t>(count) - 1].wr_id;
  }
  // Polls; returns how many messages have come.
  [[nodiscard]] std::uint32_t poll_received() {
    return static_cast<std::uint32_t>(poll(receive_queue_.get()));
  }
  // Spins until a receive has completed. A loop as tight as can be: where the two sides share a core's units,
  // each instruction spent here takes time from the other side (5 % of a send of 4 KiB under emulation).
  void wait_receive() {
    ibv_wc completion;
    int count = 0;
    for (unsigned spins = 0; (count = ibv_poll_cq(receive_queue_.get(), 1, &completion)) == 0; ++spins) {
      if (spins != look_interval) continue;
      exchange_.check_peer();
      spins = 0;
    }
    check(count, {&completion, 1});
  }
  // For spinning loops: throws when the peer has gone, looking once in many calls.
  void idle() {
    if ((++idle_count_ & look_interval) == 0) exchange_.check_peer();
  }

  static constexpr std::uint32_t receive_chunk = 32;

 private:
  static constexpr unsigned look_interval = 0xffff;

  int poll(ibv_cq* queue) {
    const int count = ibv_poll_cq(queue, static_cast<int>(completions_.size()), completions_.data());
    if (count != 0) check(count, completions_);
    return count;
  }
  // Throws when polling failed or one of `count` completions is an error.
  void check(int count, std::span<const ibv_wc> completions);
  void create_queue_pair(Device& device, const Work& work);
  void connect(const Device& device, Exchange& exchange);

  struct Grant {
    std::uint64_t address;
    std::uint32_t key;
    std::uint32_t queue_pair_number;
    std::uint32_t packet_sequence;
    std::uint32_t local_identifier;
    std::uint32_t outstanding_reads;
    std::uint32_t path_mtu;
    ibv_gid gid;
  };

  Exchange& exchange_;
  Operation operation_;
  std::uint32_t receive_depth_;
  // For payloads that travel inside the request: no second fetch of the data, no buffer to wait for.
  unsigned int inline_flag_ = 0;
  std::uint64_t idle_count_ = 0;
  MemoryRegion region_;
  CompletionQueue send_queue_;
  CompletionQueue receive_queue_;
  QueuePair queue_pair_;
  Grant peer_{};
  std::array<ibv_recv_wr, receive_chunk> receive_requests_{};
  ibv_sge receive_segment_{};
  std::array<ibv_wc, 16> completions_{};
};

}  // namespace weft::native
