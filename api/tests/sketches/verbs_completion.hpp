// Sketch: receives, completions and the end of a verbs endpoint. Included once, by verbs_sketch.cpp.
#pragma once

#include "verbs_endpoint.hpp"

namespace weft::sketch::verbs {

inline Status place_receive(Context& owner, const ReceiveRequest& request, ReceiveRecord& record,
                            std::array<ibv_sge, segments_per_request>& places, ibv_recv_wr& work) noexcept {
  if (request.segments.size() > segments_per_request) return Status::too_big;
  work.sg_list = places.data();
  for (const Segment& segment : request.segments) {
    if (segment.length == 0) continue;
    const auto region = owner.regions.find(segment.region);
    const auto n = static_cast<std::size_t>(work.num_sge);
    if (region == owner.regions.end() || !region->second->place(segment, Access::local_write, places[n]))
      return Status::invalid_argument;
    record.regions[n] = segment.region;
    ++work.num_sge;
  }
  return Status::ok;
}

inline PostResult Endpoint::post_receives(const ReceiveRequest* requests, std::size_t count) noexcept {
  if (shared_ != nullptr) return {Status::unsupported, 0};
  const std::lock_guard guard(owner_.lock);
  std::array<ibv_recv_wr, chain_length> works{};
  std::array<std::array<ibv_sge, segments_per_request>, chain_length> places{};
  std::size_t taken = 0, chained = 0;
  Status status = owner_.in_child || draining_ || failed_ || ending_ ? Status::not_connected : Status::ok;
  const auto ring = [&]() noexcept {
    ibv_recv_wr* refused = nullptr;
    for (std::size_t i = 1; i < chained; ++i) works[i - 1].next = &works[i];
    if (chained > 0 && ibv_post_recv(pair_.get(), works.data(), &refused) != 0)
      lost(Status::aborted, errno, "ibv_post_recv refused a receive that was counted");
    works = {}, chained = 0;
  };
  for (; taken < count && status == Status::ok; ++taken) {
    ReceiveRecord record;
    record.context = requests[taken].context;
    record.in_use = true;
    status = place_receive(owner_, requests[taken], record, places[chained], works[chained]);
    if (status == Status::ok &&
        (receives_.size() - receives_done_ >= request_.receive_depth || !receive_queue_->reserve(1)))
      status = Status::again;
    if (status != Status::ok) break;
    works[chained].wr_id = receive_mark;
    receives_.push_back(record);
    if (++chained == chain_length) ring();
  }
  ring();
  return {status, taken};
}

// CMP-3, CMP-4: an entry confirms everything before it; what it says is only its side, number and status.
inline void Endpoint::absorb(const ibv_wc& entry) noexcept {
  if (ended_) return;
  last_traffic_ = Context::Clock::now();
  if ((entry.wr_id & receive_mark) != 0) {
    ReceiveRecord* record = nullptr;
    if (shared_ != nullptr)  // RCQ-1: from now on it belongs to this endpoint
      record = &receives_.emplace_back(shared_->take(entry.wr_id & ~receive_mark));
    else if (receives_done_ < receives_.size())
      record = &receives_[receives_done_];
    if (record == nullptr) return;
    if (entry.status == IBV_WC_SUCCESS) {
      record->status = Status::ok;
      record->bytes = entry.byte_len;
      record->has_immediate = (entry.wc_flags & IBV_WC_WITH_IMM) != 0;
      record->immediate = be32toh(entry.imm_data);
      ++receives_done_, ++messages_received_;
    } else if (entry.status != IBV_WC_WR_FLUSH_ERR) {  // ERR-1, in the words of mlx5 and of rxe
      const bool long_message = entry.status == IBV_WC_LOC_LEN_ERR || entry.status == IBV_WC_REM_INV_REQ_ERR;
      record->status = long_message ? Status::truncated : Status::aborted;
      lost(record->status, entry.status, ibv_wc_status_str(entry.status));
    }
    if (waiting_ && messages_received_ >= waiting_->messages)
      start_ending(*std::exchange(waiting_, std::nullopt));
    return;
  }
  const bool good = entry.status == IBV_WC_SUCCESS;
  confirmed_ = good ? entry.wr_id : std::max(confirmed_, entry.wr_id - 1);
  while (done_ != handed_ && sent(done_).last_serial <= confirmed_) reads_in_flight_ -= sent(done_++).reads;
  if (!good && entry.status != IBV_WC_WR_FLUSH_ERR && !failed_) {
    faulty_send_ = done_;
    const Operation what = sent(done_).operation;
    Status cause = Status::aborted;
    if (entry.status == IBV_WC_REM_ACCESS_ERR) cause = Status::remote_access_error;
    if (entry.status == IBV_WC_REM_INV_REQ_ERR)
      cause = what == Operation::send ? Status::truncated : Status::remote_access_error;
    if (entry.status == IBV_WC_RETRY_EXC_ERR || entry.status == IBV_WC_REM_OP_ERR) cause = Status::peer_lost;
    native_code_ = static_cast<std::int32_t>(entry.vendor_err);
    lost(cause, entry.status, ibv_wc_status_str(entry.status));
  }
  push();
  if (draining_ && done_ == accepted_ && !failed_ && !ending_) request_.events->drained(messages_sent_);
}

inline void Endpoint::lost(Status cause, std::int32_t code, std::string_view text) noexcept {
  if (std::exchange(failed_, true)) return;
  fault_ = cause;  // reported only after end(): the core may know better (ERR-2)
  request_.events->failed(cause, faulty_send_.value_or(0), code, text);
}

inline Completion Endpoint::blank(Operation operation, Status status) const noexcept {
  Completion entry;
  entry.user_value = request_.user_value;
  entry.endpoint_id = request_.id;
  entry.operation = operation;
  entry.status = status;
  return entry;
}

inline bool Endpoint::ready(const CompletionQueue& queue) const noexcept {
  if (silent_) return false;
  const bool here = &queue == receive_queue_;
  return (here && (connect_report_ || ended_report_ || (up_ && receives_done_ > 0) ||
                   (ended_ && !receives_.empty()))) ||
         (&queue == send_queue_ && (up_ || ended_) && taken_ != (ended_ ? accepted_ : done_));
}

inline std::size_t Endpoint::take(CompletionQueue& queue, Completion* out, std::size_t room) noexcept {
  std::size_t count = 0;
  if (room == 0 || (!up_ && !ended_)) return 0;  // what came before go_up() waits for its `connect`
  if (&queue == receive_queue_ && std::exchange(connect_report_, false) && !silent_)
    out[count++] = blank(Operation::connect, Status::ok);
  while (&queue == send_queue_ && count < room && taken_ != (ended_ ? accepted_ : done_)) {
    const SendRecord& record = sent(taken_);
    const bool good = taken_ < done_, signalled = !has(record.flags, Flags::unsignalled);
    if ((signalled || !good) && !silent_) {  // CMP-1
      Completion& entry = out[count++] = blank(record.operation, Status::ok);
      entry.context = record.context;
      if (good) entry.bytes = record.length;
      if (!good)
        entry.status = faulty_send_ == taken_ ? cause_ : Status::cancelled, entry.native_code = native_code_;
    }
    if (signalled) queue.give_back();
    ++taken_;
  }
  while (&queue == receive_queue_ && count < room && (receives_done_ > 0 || (ended_ && !receives_.empty()))) {
    const ReceiveRecord record = receives_.front();
    receives_.pop_front();
    if (receives_done_ > 0) --receives_done_;
    queue.give_back();
    if (silent_) continue;
    Completion& entry = out[count++] = blank(Operation::receive, record.status);
    entry.context = record.context, entry.bytes = record.bytes;
    entry.immediate = record.immediate, entry.has_immediate = record.has_immediate;
  }
  // ERR-7: last, and it needs no room. Both sides' entries are takeable from the moment ended_ was set.
  if (&queue == receive_queue_ && count < room && receives_.empty() && std::exchange(ended_report_, false) &&
      !silent_)
    out[count++] = blank(Operation::endpoint_ended, cause_);
  return count;
}

// A tail per idle endpoint with unconfirmed requests, and a probe per idle peer (ERR-3).
inline void Endpoint::post_tail() noexcept {
  if (tail_serial_ > confirmed_ || failed_ || ending_ || !up_ || serial_ - confirmed_ >= hardware_depth_)
    return;
  ibv_send_wr work{}, *refused = nullptr;
  work.wr_id = ++serial_;
  work.opcode = IBV_WR_RDMA_WRITE;
  work.send_flags = IBV_SEND_SIGNALED;
  tail_serial_ = serial_;
  if (ibv_post_send(pair_.get(), &work, &refused) != 0)
    lost(Status::aborted, errno, "an empty write was refused");
}

inline bool Endpoint::tend(Context::Clock::time_point now) noexcept {
  push();
  if (confirmed_ != serial_ || now - last_traffic_ > owner_.peer_timeout / 3) post_tail();
  if (ending_ && !ended_ && now - end_since_ > std::chrono::milliseconds(20)) finish();
  return confirmed_ != serial_ || handed_ != accepted_ || (ending_ && !ended_);
}

inline bool Endpoint::uses(std::uint64_t token) const noexcept {
  const auto names = [&](const auto& record) {
    return std::ranges::find(record.regions, token) != record.regions.end();
  };
  for (std::uint64_t i = done_; i != accepted_; ++i)
    if (names(sends_[i % sends_.size()])) return true;
  return std::any_of(receives_.begin() + static_cast<std::ptrdiff_t>(receives_done_), receives_.end(), names);
}

inline Endpoint::Imported Endpoint::import_key(std::span<const std::byte> bytes) {
  Key key{};
  if (bytes.size() == sizeof key) std::memcpy(&key, bytes.data(), sizeof key);
  if (bytes.size() != sizeof key || !key_is_sound(key))
    throw Error(Status::invalid_argument,
                "these " + std::to_string(bytes.size()) + " bytes are no verbs key");
  const std::lock_guard guard(owner_.lock);
  const std::uint64_t token = next_token();
  imported_.emplace(token, key);
  return {token, key.length, static_cast<Access>(key.access)};
}

inline void Endpoint::release_key(std::uint64_t token) noexcept {
  const std::lock_guard guard(owner_.lock);
  imported_.erase(token);  // records hold the native key: operations in flight are not disturbed
}

inline void Endpoint::drain() noexcept {
  const std::lock_guard guard(owner_.lock);
  draining_ = true;
  post_tail();
  // On RC an acknowledged send has been matched with a receive: nothing more is owed (ERR-4).
  if (done_ == accepted_ && !failed_) request_.events->drained(messages_sent_);
}

inline void Endpoint::end(const provider::EndOrder& order) noexcept {
  const std::lock_guard guard(owner_.lock);
  if (ending_) return;
  if (order.after_messages && messages_received_ < order.messages) {
    waiting_ = order;
    return;
  }
  waiting_.reset();
  start_ending(order);
}

inline void Endpoint::start_ending(const provider::EndOrder& order) noexcept {
  ending_ = true;
  cause_ = order.cause;
  end_since_ = Context::Clock::now();
  // One request cannot be cancelled; this flushes all of them. tend() finishes 20 ms later, when the flushed
  // entries and the last good ones have been read.
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  static_cast<void>(ibv_modify_qp(pair_.get(), &attributes, IBV_QP_STATE));
  if (owner_.events != nullptr) owner_.events->request_service();
}

inline void Endpoint::finish() noexcept {
  send_queue_->drive();
  receive_queue_->drive();
  pair_.reset();  // the device touches no memory of it any more
  up_ = false;
  ended_ = true;
  ended_report_ = was_up_;
  notify();
  request_.events->finished();
}

inline void Endpoint::silence() noexcept {
  const std::lock_guard guard(owner_.lock);
  silent_ = true;
}

}  // namespace weft::sketch::verbs
