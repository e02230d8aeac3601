// Sketch: keys, regions and shared receive queues on verbs. Included once, by verbs_sketch.cpp.
#pragma once

#include <sys/resource.h>

#include <algorithm>

#include "verbs_sketch.hpp"

namespace weft::sketch::verbs {

// FNV over the fields: enough to refuse altered bytes (MEM-3); it is no secret.
inline std::uint64_t checksum(const Key& key) {
  std::uint64_t hash = 14695981039346656037ull;
  for (const std::uint64_t part :
       {key.address, key.length, std::uint64_t{key.native}, std::uint64_t{key.access}})
    hash = (hash ^ part) * 1099511628211ull;
  return hash;
}

inline int native_access(Access access) {
  int flags = 0;
  if (has(access, Access::local_write)) flags |= IBV_ACCESS_LOCAL_WRITE;
  if (has(access, Access::remote_read)) flags |= IBV_ACCESS_REMOTE_READ;
  // The specification demands local writing with both; MEM-1 is kept by MemoryRegion::place.
  if (has(access, Access::remote_write)) flags |= IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE;
  if (has(access, Access::remote_atomic)) flags |= IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_LOCAL_WRITE;
  return flags;
}

[[noreturn]] inline void refuse(const std::string& what, int code) {
  throw Error(code == ENOMEM || code == EMFILE ? Status::resource_limit : Status::system_error,
              what + ": " + std::strerror(code));
}

inline std::uint64_t next_token() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

inline bool key_is_sound(const Key& key) {
  return key.checksum == checksum(key) && key.address + key.length >= key.address;
}

inline ReceiveQueue::ReceiveQueue(Context& owner, CompletionQueue& queue, std::uint32_t depth,
                                  std::uint64_t user_value)
    : owner_(owner), queue_(queue), user_value_(user_value), slots_(depth) {
  ibv_srq_init_attr wanted{};
  wanted.srq_context = this;
  wanted.attr.max_wr = depth;
  wanted.attr.max_sge = segments_per_request;
  shared_.reset(ibv_create_srq(owner.domain.get(), &wanted));
  if (!shared_) refuse("ibv_create_srq of " + std::to_string(depth), errno);
  for (std::uint32_t slot = depth; slot-- > 0;) free_.push_back(slot);
  const std::lock_guard guard(owner.lock);
  queue_.shared_.push_back(this);
}

inline ReceiveQueue::~ReceiveQueue() {
  const std::lock_guard guard(owner_.lock);
  std::erase(queue_.shared_, this);
  for (const ReceiveRecord& slot : slots_)
    if (slot.in_use) queue_.give_back();
}

inline PostResult ReceiveQueue::post(const ReceiveRequest* requests, std::size_t count) noexcept {
  const std::lock_guard guard(owner_.lock);
  for (std::size_t i = 0; i < count; ++i) {
    ReceiveRecord record;
    record.context = requests[i].context;
    record.in_use = true;
    std::array<ibv_sge, segments_per_request> places{};
    ibv_recv_wr work{}, *refused = nullptr;
    if (const Status status = place_receive(owner_, requests[i], record, places, work); status != Status::ok)
      return {status, i};
    if (free_.empty() || !queue_.reserve(1)) return {Status::again, i};
    const std::uint32_t slot = free_.back();
    work.wr_id = receive_mark | slot;
    if (ibv_post_srq_recv(shared_.get(), &work, &refused) != 0)
      return queue_.give_back(), PostResult{Status::again, i};
    free_.pop_back();
    slots_[slot] = record;
  }
  return {Status::ok, count};
}

inline void ReceiveQueue::set_low_water(std::uint32_t mark) noexcept {
  const std::lock_guard guard(owner_.lock);
  mark_ = mark;
}

inline ReceiveRecord ReceiveQueue::take(std::uint64_t slot) noexcept {
  ReceiveRecord record = slots_[slot];
  slots_[slot].in_use = false;
  const auto posted_before = static_cast<std::uint32_t>(slots_.size() - free_.size());
  free_.push_back(static_cast<std::uint32_t>(slot));
  if (posted_before == mark_ && mark_ != 0) crossed_ = true, queue_.make_readable();
  return record;
}

inline bool ReceiveQueue::take_report(Completion& out) noexcept {
  if (!std::exchange(crossed_, false)) return false;
  out = {};
  out.user_value = user_value_;
  out.operation = Operation::low_water;
  return true;
}

inline bool ReceiveQueue::uses(std::uint64_t token) const noexcept {
  return std::ranges::any_of(slots_, [&](const ReceiveRecord& one) {
    return one.in_use && std::ranges::find(one.regions, token) != one.regions.end();
  });
}

inline MemoryRegion::MemoryRegion(Context& owner, const RegistrationRequest& request)
    : owner_(owner),
      base_(reinterpret_cast<std::uintptr_t>(request.address)),
      length_(request.length),
      access_(request.access) {
  if (length_ == 0) throw Error(Status::invalid_argument, "a region of length 0 cannot be registered");
  region_.reset(request.kind == RegistrationRequest::Kind::host
                    ? ibv_reg_mr(owner.domain.get(), request.address, length_, native_access(access_))
                    : ibv_reg_dmabuf_mr(owner.domain.get(), request.dmabuf_offset, length_, base_,
                                        request.dmabuf_descriptor, native_access(access_)));
  if (!region_) {
    const int code = errno;
    rlimit locked{};
    getrlimit(RLIMIT_MEMLOCK, &locked);  // MEM-6: which limit, its value, the size asked for
    refuse("registering " + std::to_string(length_) + " bytes (locked memory limit " +
               std::to_string(locked.rlim_cur) + ")",
           code);
  }
  key_ = {base_, length_, region_->rkey, static_cast<std::uint32_t>(access_), 0};
  key_.checksum = checksum(key_);
  const std::lock_guard guard(owner.lock);
  token_ = next_token();
  owner.regions.emplace(token_, this);
}

inline AtomicScope MemoryRegion::atomic_scope() const noexcept {
  return has(access_, Access::remote_atomic) ? owner_.attributes().atomic_scope : AtomicScope::none;  // OPS-5
}

inline bool MemoryRegion::place(const Segment& segment, Access wanted, ibv_sge& out) const noexcept {
  if (!has(access_, wanted) || segment.offset > length_ || segment.length > length_ - segment.offset)
    return false;
  out = {base_ + segment.offset, static_cast<std::uint32_t>(segment.length), region_->lkey};
  return true;
}

inline void MemoryRegion::collect_users(std::vector<std::uint32_t>& endpoint_ids) {
  const std::lock_guard guard(owner_.lock);
  for (auto& [number, endpoint] : owner_.by_pair_number)
    if (endpoint->uses(token_)) endpoint_ids.push_back(endpoint->id());
}

inline Status MemoryRegion::deregister() noexcept {
  const std::lock_guard guard(owner_.lock);
  if (!region_) return Status::ok;
  bool busy = false;
  for (auto& [number, endpoint] : owner_.by_pair_number)
    if (endpoint->uses(token_)) busy = true, endpoint->post_tail();  // `busy` passes by itself
  for (CompletionQueue* queue : owner_.queues)
    for (ReceiveQueue* shared : queue->shared_queues()) busy |= shared->uses(token_);
  if (busy) return Status::busy;
  owner_.regions.erase(token_);
  region_.reset();  // the device refuses the key from here on; packets in flight are cut (MEM-5)
  return Status::ok;
}

}  // namespace weft::sketch::verbs
