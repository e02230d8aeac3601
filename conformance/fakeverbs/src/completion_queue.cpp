#include "completion_queue.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>

#include "faults.hpp"
#include "queue_pair.hpp"

namespace fakeverbs {
namespace {

constexpr std::uint32_t any_completion = 1;
constexpr std::uint32_t solicited_or_error = 2;

void notify(Adapter& adapter, const Segment& segment, SharedCompletionQueue& queue, bool solicited) {
  std::uint32_t armed = queue.armed.load();
  if (armed == 0 || (armed == solicited_or_error && !solicited)) return;
  if (queue.armed.exchange(0) == 0 || queue.channel == 0) return;
  const EventAddress address{static_cast<std::uint32_t>(segment.pid()), queue.channel};
  if (!adapter.events().send(address, {0, queue.handle})) queue.owed.fetch_add(1);
}

// What the specification leaves undefined in an error entry, and what programs are tempted to read.
void scribble(ibv_wc& entry, std::uint64_t draw) {
  constexpr std::array opcodes{IBV_WC_SEND,      IBV_WC_RDMA_WRITE, IBV_WC_RDMA_READ,
                               IBV_WC_COMP_SWAP, IBV_WC_RECV,       IBV_WC_RECV_RDMA_WITH_IMM};
  entry.opcode = opcodes[draw % opcodes.size()];
  entry.byte_len = static_cast<std::uint32_t>(draw >> 8);
  entry.imm_data = static_cast<std::uint32_t>(draw >> 16);
  entry.src_qp = static_cast<std::uint32_t>(draw >> 24) & 0xffffff;
  entry.wc_flags = static_cast<unsigned>(draw >> 40) & (IBV_WC_GRH | IBV_WC_WITH_IMM | IBV_WC_WITH_INV);
  entry.pkey_index = static_cast<std::uint16_t>(draw >> 44);
  entry.slid = static_cast<std::uint16_t>(draw >> 48);
}

}  // namespace

CompletionQueue* CompletionQueue::create(const Request& request) {
  Context& context = *request.context;
  const auto& limits = faults().plan.limits;
  if (request.entries == 0 || request.entries > limits.completion_entries) {
    errno = EINVAL;
    return nullptr;
  }
  if (context.fatal()) {
    errno = EIO;
    return nullptr;
  }
  const std::uint32_t capacity = std::bit_ceil(request.entries);
  constexpr std::size_t head_bytes = page_bytes;
  const std::size_t bytes = head_bytes + capacity * sizeof(SharedCompletion);
  const std::uint64_t offset =
      faults().create_enomem.strikes() ? 0 : context.adapter().arena().allocate(bytes);
  if (offset == 0) {
    errno = ENOMEM;
    return nullptr;
  }
  auto& shared = context.adapter().segment().at<SharedCompletionQueue>(offset);
  shared.tail.store(0);
  shared.armed.store(0);
  shared.owed.store(0);
  shared.overrun.store(0);
  shared.capacity = capacity;
  shared.entries = offset + head_bytes;
  shared.channel = request.channel != nullptr ? static_cast<Channel*>(request.channel)->number : 0;

  auto* const queue = new CompletionQueue(context, shared, offset, bytes);
  queue->ring_.prepare();
  queue->context = &context.context;
  queue->channel = request.channel;
  queue->cq_context = request.cq_context;
  queue->cqe = static_cast<int>(capacity);
  ::pthread_mutex_init(&queue->mutex, nullptr);
  ::pthread_cond_init(&queue->cond, nullptr);
  queue->fill_extended(request.wanted_fields);
  queue->handle = context.adapter().add(*queue);
  shared.handle = queue->handle;
  if (request.channel != nullptr) {
    ::pthread_mutex_lock(&context.context.mutex);
    ++request.channel->refcnt;
    ::pthread_mutex_unlock(&context.context.mutex);
  }
  return queue;
}

CompletionQueue::CompletionQueue(Context& context, SharedCompletionQueue& shared, std::uint64_t offset,
                                 std::size_t bytes)
    : ibv_cq_ex{},
      context_(context),
      shared_(&shared),
      ring_(shared, &context.adapter().segment().at<SharedCompletion>(shared.entries)),
      offset_(offset),
      bytes_(bytes) {}

CompletionQueue::~CompletionQueue() {
  ::pthread_cond_destroy(&cond);
  ::pthread_mutex_destroy(&mutex);
  context_.adapter().arena().release(offset_, bytes_);
}

// A fault holds the whole queue back for a while, from the entry on it struck.
bool CompletionQueue::is_held_back() {
  const std::int64_t until = held_until_.load(std::memory_order_relaxed);
  if (until != 0) {
    if (Clock::now().time_since_epoch().count() < until) return true;
    held_until_.store(0, std::memory_order_relaxed);
    return false;
  }
  if (head_ < checked_ || !faults().plan.delay.possible()) return false;
  checked_ = head_ + 1;
  if (!faults().delay.strikes()) return false;
  const auto end = Clock::now() + std::chrono::microseconds(faults().plan.delay_us);
  held_until_.store(end.time_since_epoch().count(), std::memory_order_relaxed);
  context_.adapter().wake_at(end);
  return true;
}

bool CompletionQueue::take(Completion& completion) {
  while (true) {
    if (!ring_.peek(head_, completion)) {
      // Now and then only: to look whether a process lives takes long, and one that was just interrupted will
      // go on.
      constexpr std::uint32_t often = 1024;
      if (++empty_polls_ % often != 0 || !ring_.skip_dead(head_)) return false;
      ++head_;
      continue;
    }
    if (is_held_back()) return false;
    ring_.free(head_++);
    // Entries of a queue pair that was destroyed are gone with it.
    QueuePair* const pair = context_.adapter().find(completion.qp_num);
    if (pair == nullptr) continue;
    pair->completion_was_read(completion);
    return true;
  }
}

int CompletionQueue::poll(int count, ibv_wc* entries) {
  const std::lock_guard guard(mutex_);
  int taken = 0;
  Completion completion;
  while (taken < count && take(completion)) {
    ibv_wc& entry = entries[taken++];
    entry.wr_id = completion.wr_id;
    entry.status = static_cast<ibv_wc_status>(completion.status);
    entry.opcode = static_cast<ibv_wc_opcode>(completion.opcode);
    entry.vendor_err = 0;
    entry.byte_len = completion.byte_len;
    entry.imm_data = completion.imm_data;
    entry.qp_num = completion.qp_num;
    entry.src_qp = completion.src_qp;
    entry.wc_flags = completion.wc_flags;
    entry.pkey_index = 0;
    entry.slid = 0;
    entry.sl = 0;
    entry.dlid_path_bits = 0;
    if (completion.status != IBV_WC_SUCCESS) {
      entry.vendor_err = 0x80 + completion.status;
      if (faults().plan.garbage) scribble(entry, mix(faults().plan.seed, ++garbage_drawn_));
    }
  }
  return taken;
}

int CompletionQueue::arm(bool solicited_only) {
  // Asking for less does not take back what was asked for already.
  std::uint32_t before = 0;
  if (solicited_only) {
    shared_->armed.compare_exchange_strong(before, solicited_or_error);
  } else {
    shared_->armed.store(any_completion);
  }
  return 0;
}

void CompletionQueue::look(Clock::time_point now) {
  const std::int64_t held = held_until_.load(std::memory_order_relaxed);
  if (held != 0) {
    if (now.time_since_epoch().count() < held) {
      context_.adapter().wake_at(Clock::time_point(Clock::duration(held)));
    } else {
      // What was held back comes in now, as far as a sleeping program is concerned.
      notify(context_.adapter(), context_.adapter().segment(), *shared_, true);
    }
  }
  if (const std::unique_lock guard(mutex_, std::try_to_lock); guard && ring_.skip_dead(head_)) ++head_;
  if (shared_->overrun.load() != 0 && !std::exchange(overrun_told_, true)) {
    context_.raise(IBV_EVENT_CQ_ERR, handle);
  }
}

void CompletionQueue::send_owed_event() {
  if (shared_->owed.load() == 0) return;
  shared_->owed.fetch_sub(1);
  const EventAddress address{static_cast<std::uint32_t>(context_.adapter().segment().pid()),
                             shared_->channel};
  if (!context_.adapter().events().send(address, {0, handle})) shared_->owed.fetch_add(1);
}

void deliver(Adapter& adapter, const Segment& segment, std::uint64_t queue_offset,
             const Completion& completion) {
  auto& queue = segment.at<SharedCompletionQueue>(queue_offset);
  CompletionRing ring(queue, &segment.at<SharedCompletion>(queue.entries));
  if (queue.overrun.load(std::memory_order_relaxed) != 0) return;
  if (!ring.add(adapter.slot(), completion)) {
    queue.overrun.store(1);
    segment.ring();
    return;
  }
  notify(adapter, segment, queue, completion.solicited || completion.status != IBV_WC_SUCCESS);
}

int destroy_completion_queue(CompletionQueue& queue) {
  Context& context = queue.owner();
  if (std::atomic_ref(queue.users).load() != 0) return EBUSY;
  context.adapter().remove(queue);
  ::pthread_mutex_lock(&queue.mutex);
  while (queue.comp_events_completed != queue.events_taken ||
         queue.async_events_completed != queue.async_taken) {
    ::pthread_cond_wait(&queue.cond, &queue.mutex);
  }
  ::pthread_mutex_unlock(&queue.mutex);
  if (queue.channel != nullptr) {
    ::pthread_mutex_lock(&context.context.mutex);
    --queue.channel->refcnt;
    ::pthread_mutex_unlock(&context.context.mutex);
  }
  delete &queue;
  return 0;
}

}  // namespace fakeverbs
