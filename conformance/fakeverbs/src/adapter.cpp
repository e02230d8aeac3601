#include "adapter.hpp"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "completion_queue.hpp"
#include "context.hpp"
#include "faults.hpp"
#include "queue_pair.hpp"
#include "receive_pool.hpp"
#include "registry.hpp"

namespace fakeverbs {
namespace {

std::mutex current_mutex;
// Not the owner: the contexts are. A child's copy of the pointer is never used: it forgets it at once.
std::weak_ptr<Adapter>& current() {
  static auto* const pointer = new std::weak_ptr<Adapter>;
  return *pointer;
}

void forget_in_child() {
  // What the parent had belongs to the parent; the memory stays as it is.
  new (&current_mutex) std::mutex;
  new (&current()) std::weak_ptr<Adapter>;
}

void prepare_process() {
  static const bool once = [] {
    ::pthread_atfork(nullptr, nullptr, forget_in_child);
    // Peers of the same user copy from and to this process.
    ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    return true;
  }();
  static_cast<void>(once);
}

std::atomic<std::uint32_t>& number_sequence() {
  static std::atomic<std::uint32_t> sequence{own_incarnation().pid * 7919};
  return sequence;
}

// The device thread itself need not be woken.
thread_local bool is_device_thread = false;

constexpr std::uint32_t sequence_mask = (1u << queue_pair_sequence_bits) - 1;

}  // namespace

bool process_is_alive(std::uint32_t slot) { return slot_may_be_alive(settings().network, slot); }

std::shared_ptr<Adapter> Adapter::acquire() {
  prepare_process();
  const std::lock_guard guard(current_mutex);
  if (auto adapter = current().lock()) return adapter;
  auto segment = claim_segment(settings().network);
  if (!segment) return nullptr;
  auto adapter = std::make_shared<Adapter>(std::move(segment));
  if (!adapter->thread_.start()) return nullptr;
  current() = adapter;
  return adapter;
}

Adapter::Adapter(std::shared_ptr<Segment> segment)
    : segment_(std::move(segment)),
      slot_(segment_->slot()),
      arena_(*segment_),
      regions_(*segment_),
      events_(settings().network),
      next_look_(Clock::time_point::max().time_since_epoch().count()) {}

Adapter::~Adapter() {
  stopping_.store(true);
  wake();
  thread_.join();
  release_segment(settings().network, *segment_);
}

std::shared_ptr<Segment> Adapter::segment_of(std::uint32_t qp_num) {
  const std::uint32_t slot = qp_num >> queue_pair_sequence_bits;
  if (slot == slot_) return segment_;
  if (slot >= max_processes) return nullptr;
  const std::lock_guard guard(peers_mutex_);
  auto& known = peers_[slot];
  if (auto segment = known.lock(); segment && segment->alive()) return segment;
  auto segment = find_segment(settings().network, slot);
  known = segment;
  return segment;
}

std::uint32_t Adapter::reserve_number() {
  const std::lock_guard guard(objects_mutex_);
  if (queue_pair_count_ >= std::min(faults().plan.limits.queue_pairs, max_queue_pairs)) return 0;
  while (true) {
    const std::uint32_t sequence = number_sequence().fetch_add(1) & sequence_mask;
    const std::uint32_t number = slot_ << queue_pair_sequence_bits | sequence;
    // 0 and 1 are the special queue pairs of every port.
    if (number <= 1 || queue_pairs_[number % max_queue_pairs].load() != nullptr ||
        segment_->queue_pair(number % max_queue_pairs).number.load() != 0) {
      continue;
    }
    segment_->queue_pair(number % max_queue_pairs).number.store(number);
    ++queue_pair_count_;
    return number;
  }
}

std::uint64_t Adapter::live_objects() {
  const std::lock_guard guard(objects_mutex_);
  return queue_pair_count_ + completion_queues_.size() + shared_queues_.size() + regions_.live();
}

void Adapter::add(QueuePair& pair) {
  const std::lock_guard guard(objects_mutex_);
  const std::uint32_t index = pair.qp_base.qp_num % max_queue_pairs;
  queue_pairs_[index].store(&pair);
  queue_pairs_end_ = std::max(queue_pairs_end_, index + 1);
}

void Adapter::remove(QueuePair& pair) {
  const std::lock_guard guard(objects_mutex_);
  queue_pairs_[pair.qp_base.qp_num % max_queue_pairs].store(nullptr);
  --queue_pair_count_;
  while (queue_pairs_end_ > 0 && queue_pairs_[queue_pairs_end_ - 1].load() == nullptr) --queue_pairs_end_;
}

QueuePair* Adapter::find(std::uint32_t qp_num) const {
  QueuePair* const pair = queue_pairs_[qp_num % max_queue_pairs].load(std::memory_order_acquire);
  return pair != nullptr && pair->qp_base.qp_num == qp_num ? pair : nullptr;
}

std::uint32_t Adapter::add(CompletionQueue& queue) {
  const std::lock_guard guard(objects_mutex_);
  completion_queues_[next_handle_] = &queue;
  return next_handle_++;
}

void Adapter::remove(CompletionQueue& queue) {
  const std::lock_guard guard(objects_mutex_);
  completion_queues_.erase(queue.handle);
}

std::uint32_t Adapter::add(ReceivePool& pool) {
  const std::lock_guard guard(objects_mutex_);
  shared_queues_[next_handle_] = &pool;
  return next_handle_++;
}

void Adapter::remove(ReceivePool& pool) {
  const std::lock_guard guard(objects_mutex_);
  shared_queues_.erase(pool.handle);
}

void Adapter::add(Context& context) {
  const std::lock_guard guard(objects_mutex_);
  contexts_.push_back(&context);
}

void Adapter::remove(Context& context) {
  const std::lock_guard guard(objects_mutex_);
  std::erase(contexts_, &context);
}

void Adapter::wake_at(Clock::time_point when) {
  const std::int64_t asked = when.time_since_epoch().count();
  std::int64_t planned = next_look_.load();
  while (asked < planned) {
    if (next_look_.compare_exchange_weak(planned, asked)) {
      if (!is_device_thread) wake();
      return;
    }
  }
}

void Adapter::sleep_until_rung(std::uint32_t seen, Clock::time_point now) {
  auto& header = segment_->header();
  header.sleeping.store(1);
  const std::int64_t left = next_look_.load() - now.time_since_epoch().count();
  // However far away the next thing is, a look now and then finds what a dying peer could not tell any more.
  constexpr std::int64_t longest = 1'000'000'000;
  const std::int64_t nap = std::clamp<std::int64_t>(left, 0, longest);
  const timespec limit{nap / 1'000'000'000, nap % 1'000'000'000};
  if (nap > 0) ::syscall(SYS_futex, &header.doorbell, FUTEX_WAIT, seen, &limit, nullptr, 0);
  header.sleeping.store(0);
}

void Adapter::run() {
  is_device_thread = true;
  ::pthread_setname_np(::pthread_self(), "fakeverbs");
  while (!stopping_.load()) {
    const std::uint32_t seen = segment_->header().doorbell.load();
    const auto now = Clock::now();
    next_look_.store(Clock::time_point::max().time_since_epoch().count());
    look_at_everything(now);
    if (!stopping_.load()) sleep_until_rung(seen, now);
  }
}

void Adapter::look_at_everything(Clock::time_point now) {
  for_each_context([now](Context& context) { context.look(now); });
  // The queues first: what broke a queue pair is told before that it broke.
  for_each_completion_queue([now](CompletionQueue& queue) { queue.look(now); });
  for_each_queue_pair([now](QueuePair& pair) { pair.look(now); });
  const std::lock_guard guard(objects_mutex_);
  for (const auto& [handle, pool] : shared_queues_) pool->look();
}

}  // namespace fakeverbs
