// A completion queue over endpoints that move their bytes through a descriptor each (a socket, say): which of
// them to look at, and how to sleep on all of them.
#pragma once

#include <cstddef>
#include <vector>

#include "helped_queue.hpp"

namespace weft::engine {

class DescriptorContext;
class DescriptorEndpoint;

class DescriptorQueue final : public HelpedQueue {
 public:
  DescriptorQueue(DescriptorContext& context, std::uint32_t capacity, provider::QueueEvents& events);
  ~DescriptorQueue() override;

  // ---- provider::CompletionQueue
  std::size_t poll(Completion* out, std::size_t room) noexcept override;
  [[nodiscard]] bool arm() noexcept override;

  // ---- for endpoints, with the gate held
  void add(DescriptorEndpoint& endpoint) noexcept;
  void remove(DescriptorEndpoint& endpoint) noexcept;
  void output_waits(DescriptorEndpoint& endpoint, bool waits) noexcept;

  // ---- for the helper
  bool drive_for_absent() noexcept override;
  void close_in_child() noexcept override;

 private:
  void drive(bool somebody_sleeps) noexcept override;
  [[nodiscard]] bool prepare_sleep() noexcept override;
  void watch_in(int epoll) noexcept override;
  // What a ready endpoint needs at first, apart from it and close together.
  struct Seat {
    DescriptorEndpoint* endpoint = nullptr;  // null: free
    const ReceiveRecord* receive = nullptr;  // for the next message
    int descriptor = -1;
    bool takes_scratch = false;  // the endpoint, whatever comes
  };
  void look_after_step(DescriptorEndpoint& endpoint, Seat& seat) noexcept;
  bool step(DescriptorEndpoint& endpoint) noexcept;
  bool step_ready(Seat& seat) noexcept;
  bool drive_ready(int most_events) noexcept;
  void watch(DescriptorEndpoint& endpoint) noexcept;
  void unwatch(DescriptorEndpoint& endpoint) noexcept;
  void unwatch_lone() noexcept;
  void watch_all() noexcept;
  void watch_output(DescriptorEndpoint& endpoint, bool output) noexcept;

  // See DescriptorContext::plain_receive.
  std::ptrdiff_t (*const plain_receive_)(int, std::byte*, std::size_t) noexcept;
  std::vector<DescriptorEndpoint*> endpoints_;
  std::vector<Seat> seats_;  // by the number in an epoll event
  std::vector<std::uint32_t> free_seats_;
  std::vector<DescriptorEndpoint*> waiting_;  // for room in their sockets
  DescriptorEndpoint* hot_ = nullptr;         // where data came last
  unsigned spins_ = 0;                        // polls since somebody wanted to sleep
  unsigned in_a_row_ = 0;                     // times that data came there without any elsewhere
};

}  // namespace weft::engine
