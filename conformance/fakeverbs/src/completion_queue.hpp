// Completion queues, and the channels their events go to.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <mutex>

#include "completion_ring.hpp"
#include "context.hpp"

namespace fakeverbs {

struct Channel : ibv_comp_channel {
  std::uint32_t number;
};

class CompletionQueue : public ibv_cq_ex {
 public:
  struct Request {
    Context* context;
    std::uint32_t entries;
    void* cq_context;
    ibv_comp_channel* channel;
    std::uint64_t wanted_fields;  // ibv_create_cq_wc_flags, for the extended way of polling
  };
  [[nodiscard]] static CompletionQueue* create(const Request& request);  // null and errno
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;
  ~CompletionQueue();
  [[nodiscard]] static CompletionQueue& of(ibv_cq* queue) {
    return static_cast<CompletionQueue&>(*reinterpret_cast<ibv_cq_ex*>(queue));
  }
  [[nodiscard]] static CompletionQueue& of(ibv_cq_ex* queue) { return static_cast<CompletionQueue&>(*queue); }
  [[nodiscard]] ibv_cq* plain() { return reinterpret_cast<ibv_cq*>(static_cast<ibv_cq_ex*>(this)); }

  [[nodiscard]] Context& owner() const { return context_; }
  [[nodiscard]] SharedCompletionQueue& shared() const { return *shared_; }
  [[nodiscard]] std::uint64_t offset() const { return offset_; }

  int poll(int count, ibv_wc* entries);
  int arm(bool solicited_only);
  // The extended way: between start and end the queue is locked.
  int start_extended();
  int next_extended();
  void end_extended();
  [[nodiscard]] const Completion& current() const { return current_; }

  // Nobody is in the middle of a poll that began before this call.
  void wait_for_pollers() { const std::lock_guard guard(mutex_); }
  void look(Clock::time_point now);
  void send_owed_event();

  std::uint32_t users = 0;         // queue pairs; under the adapter's rules for control calls
  std::uint32_t events_taken = 0;  // under ibv_cq.mutex
  std::uint32_t async_taken = 0;   // under ibv_cq.mutex

 private:
  CompletionQueue(Context& context, SharedCompletionQueue& shared, std::uint64_t offset, std::size_t bytes);
  [[nodiscard]] bool take(Completion& completion);
  [[nodiscard]] bool is_held_back();
  void fill_extended(std::uint64_t wanted_fields);

  Context& context_;
  SharedCompletionQueue* shared_;
  CompletionRing ring_;
  std::uint64_t offset_;
  std::size_t bytes_;
  std::mutex mutex_;
  std::uint64_t head_ = 0;
  std::uint64_t checked_ = 0;  // positions below it have been asked about their delay
  std::atomic<std::int64_t> held_until_{0};
  std::uint32_t empty_polls_ = 0;
  std::uint64_t garbage_drawn_ = 0;
  bool overrun_told_ = false;
  Completion current_;
};

// Adds a completion to a queue of any process, and tells its program if it asked to be told. When the queue
// is full it is broken for good, and so are the queue pairs that use it.
void deliver(Adapter& adapter, const Segment& segment, std::uint64_t queue_offset,
             const Completion& completion);

[[nodiscard]] ibv_comp_channel* create_channel(Context& context);
int destroy_channel(ibv_comp_channel* channel);
int next_completion_event(ibv_comp_channel* channel, ibv_cq** queue, void** queue_context);
int destroy_completion_queue(CompletionQueue& queue);

}  // namespace fakeverbs
