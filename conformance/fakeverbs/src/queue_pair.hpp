// Reliable connected queue pairs.
//
// A send request is carried out by the process that posted it, in the post call itself when nothing is in the
// way, else by its device thread: it copies between the two processes' memory, takes the peer's receive and
// adds to the peer's completion queue. The peer's program takes no part in it. See the README for the whole
// picture.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "completion_queue.hpp"
#include "context.hpp"
#include "deferred_writes.hpp"
#include "receive_pool.hpp"
#include "receive_ring.hpp"
#include "send_queue.hpp"

namespace fakeverbs {

class QueuePair : public ibv_qp_ex {
 public:
  [[nodiscard]] static QueuePair* create(Context& context,
                                         ibv_qp_init_attr_ex& attributes);  // null and errno
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;
  ~QueuePair();
  [[nodiscard]] static QueuePair& of(ibv_qp_ex* pair) { return static_cast<QueuePair&>(*pair); }
  [[nodiscard]] static QueuePair& of(ibv_qp* pair) {
    return static_cast<QueuePair&>(*reinterpret_cast<ibv_qp_ex*>(pair));
  }

  int post_send(ibv_send_wr* request, ibv_send_wr** bad);
  int post_receive(ibv_recv_wr* request, ibv_recv_wr** bad);
  int modify(const ibv_qp_attr& attributes, int mask);
  int query(ibv_qp_attr& attributes, ibv_qp_init_attr& initial);

  // The extended way of posting: from start to complete or abort the queue pair is locked.
  void start_batch();
  int complete_batch();
  void abort_batch();
  SendRequest* add_to_batch(ibv_wr_opcode opcode);
  void set_batch_segments(const ibv_sge* segments, std::size_t count);
  void set_batch_inline(const ibv_data_buf* buffers, std::size_t count);
  [[nodiscard]] bool can_post_extended() const { return extended_; }

  [[nodiscard]] Context& owner() const { return context_; }
  void completion_was_read(const Completion& completion) {
    if (completion.send_position != 0) sends_.retire(completion.send_position);
  }
  void look(Clock::time_point now);
  void wake_waiting_peer();
  // Everything the device does with memory on behalf of this queue pair, in either direction, is over.
  void wait_for_accesses();
  [[nodiscard]] int prepare_destruction();

  std::uint32_t async_taken = 0;  // under ibv_qp.mutex

 private:
  enum class Waiting { no, for_receive, for_answer };
  struct Outcome {
    enum Kind { done, receiver_not_ready, no_answer, busy } kind = done;
    ibv_wc_status status = IBV_WC_SUCCESS;
    std::uint32_t bytes = 0;
  };

  QueuePair(Context& context, SharedQueuePair& shared);
  [[nodiscard]] bool allocate(const ibv_qp_init_attr_ex& attributes);
  void fill_extended();
  [[nodiscard]] ibv_qp_state state() const { return static_cast<ibv_qp_state>(shared_->state.load()); }

  // Modifying. All under mutex_.
  [[nodiscard]] int check_modification(const ibv_qp_attr& attributes, int mask, ibv_qp_state to) const;
  void apply(const ibv_qp_attr& attributes, int mask);
  void enter(ibv_qp_state to);
  void reset();

  // Carrying out. All under mutex_.
  [[nodiscard]] int check_send(const ibv_send_wr& request) const;
  void run();
  [[nodiscard]] bool settle(const SendRequest& request, const Outcome& outcome);
  void complete(const SendRequest& request, ibv_wc_status status, std::uint32_t bytes);
  void fail();
  void flush_receives();
  [[nodiscard]] Outcome execute(const SendRequest& request);
  [[nodiscard]] bool link();
  [[nodiscard]] Outcome execute_message(const SendRequest& request, std::uint64_t bytes);
  [[nodiscard]] Outcome execute_write(const SendRequest& request, std::uint64_t bytes);
  [[nodiscard]] Outcome execute_read(const SendRequest& request, std::uint64_t bytes);
  [[nodiscard]] Outcome execute_atomic(const SendRequest& request, std::uint64_t bytes);
  [[nodiscard]] Outcome refused_by_peer(ibv_wc_status status, ibv_event_type event);
  [[nodiscard]] bool locate_local(const SendRequest& request, std::uint32_t rights, std::uint64_t& bytes);
  [[nodiscard]] bool locate_remote(std::uint32_t key, std::uint64_t address, std::uint64_t bytes,
                                   std::uint32_t rights);
  [[nodiscard]] bool find_receive();
  [[nodiscard]] Outcome locate_receive(std::uint64_t bytes);
  void deliver_receive(const SendRequest& request, ibv_wc_status status, std::uint32_t bytes);
  void place_deferred();
  void place_deferred_alone();
  void break_by_plan();

  Context& context_;
  Adapter& adapter_;
  SharedQueuePair* shared_;
  CompletionQueue* send_queue_ = nullptr;
  CompletionQueue* receive_queue_ = nullptr;
  bool signal_all_ = false;
  bool extended_ = false;
  std::uint64_t receives_offset_ = 0;  // 0 with a shared receive queue
  std::size_t receives_bytes_ = 0;
  ibv_qp_cap capacities_{};
  ibv_qp_attr attributes_{};

  std::mutex mutex_;  // everything about sending, and the state
  SendQueue sends_;
  std::uint64_t batch_ = 0;  // requests added since start_batch
  int batch_error_ = 0;
  std::shared_ptr<Segment> peer_segment_;
  SharedQueuePair* peer_ = nullptr;
  std::vector<iovec> local_;  // kept to allocate once
  std::vector<iovec> remote_;
  Receive receive_;
  DeferredWrites deferred_;
  Clock::time_point deferred_until_;
  Waiting waiting_ = Waiting::no;
  Clock::time_point next_try_;
  Clock::time_point deadline_;
  Clock::duration pause_{};
  std::uint32_t not_ready_left_ = 0;
  bool flushed_ = false;    // the receives, since the error
  bool last_told_ = false;  // that a shared queue is not used any more

  std::mutex receive_mutex_;  // posting receives
};

int destroy_queue_pair(QueuePair& pair);

}  // namespace fakeverbs
