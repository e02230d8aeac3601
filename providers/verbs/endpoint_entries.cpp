// Entries of the device become completions of records.
#include <endian.h>

#include <bit>

#include "context.hpp"
#include "endpoint.hpp"
#include "shared_receives.hpp"

namespace weft::verbs {

namespace {

// What a failed send-side request says about the connection.
Status cause_of(ibv_wc_status status, Operation operation) noexcept {
  switch (status) {
    case IBV_WC_REM_ACCESS_ERR:
      return Status::remote_access_error;
    case IBV_WC_REM_INV_REQ_ERR:
      // For a message: longer than its receive. Anything else that the target's device takes for invalid is
      // an access it does not grant.
      return operation == Operation::send ? Status::truncated : Status::remote_access_error;
    case IBV_WC_RETRY_EXC_ERR:
    case IBV_WC_RNR_RETRY_EXC_ERR:
    case IBV_WC_RESP_TIMEOUT_ERR:
    case IBV_WC_REM_ABORT_ERR:
    case IBV_WC_REM_OP_ERR:  // the peer's device failed: its word follows
      return Status::peer_lost;
    default:
      return Status::aborted;
  }
}

std::int32_t native_code_of(const ibv_wc& entry) noexcept {
  return entry.vendor_err != 0 ? static_cast<std::int32_t>(entry.vendor_err)
                               : static_cast<std::int32_t>(entry.status);
}

}  // namespace

void Endpoint::on_sent(const ibv_wc& entry, Queue::Out& out) noexcept {
  if (entry.status != IBV_WC_SUCCESS) {
    send_failed(entry, out);
    return;
  }
  const std::uint32_t serial = Tag::number(entry.wr_id);
  confirm(serial, out);
  if (care_) after_own(serial);
}

void Endpoint::confirm(std::uint32_t serial, Queue::Out& out) noexcept {
  confirmed_ = serial;
  std::uint64_t head = sends_.head;
  for (const std::uint64_t end = issued(); head != end; ++head) {
    const SendRecord& record = sends_[head];
    if (!at_or_before(record.last_serial, serial)) break;
    messages_confirmed_ += record.kind.message ? 1 : 0;
    if (!record.kind.signalled) continue;
    if (completes_here_) {
      group_.emit(out, [&](Completion& entry) noexcept { fill_sent(entry, record); });
    } else {
      complete_elsewhere(record);
    }
  }
  sends_.head = head;
}

void Endpoint::complete_elsewhere(const SendRecord& record) noexcept {
  if (silenced_) {
    send_queue_.release(1);
    return;
  }
  Completion entry = sent_;
  entry.context = record.context;
  entry.bytes = record.length;
  entry.operation = record.kind.operation;
  send_queue_.push(entry);
}

void Endpoint::after_own(std::uint32_t serial) noexcept {
  if (own_open_ && at_or_before(own_serial_, serial)) own_open_ = false;
  set_care(own_open_ || state_ == State::closing || held_ != 0);
  if (held_ != 0 || state_ == State::closing) after_confirm();
}

void Endpoint::after_confirm() noexcept {
  if (held_ != 0) push_held();
  if (state_ == State::closing && sends_.empty() && !drain_told_) {
    drain_told_ = true;
    // On a reliable connection an acknowledged message was matched with a receive: nothing more is owed
    // (ERR-4).
    events_->drained(messages_confirmed_);
  }
}

void Endpoint::send_failed(const ibv_wc& entry, Queue::Out& out) noexcept {
  const std::uint32_t serial = Tag::number(entry.wr_id);
  // Requests are executed in order: whatever is before the first that failed has succeeded.
  if (entry.status != IBV_WC_WR_FLUSH_ERR && fault_position_ == none && !flushing_) {
    confirm(serial - 1, out);
    flushing_ = true;
    const SendRecord* at_fault = nullptr;
    if (sends_.head != sends_.tail) {
      const SendRecord& record = sends_.front();
      // A record whose pieces are not all handed over has its last serial so far.
      const std::uint32_t requests = record.kind.planned ? plans_[sends_.head & inline_mask_].requests : 1;
      if (requests != 0 && at_or_before(record.last_serial - requests + 1, serial)) at_fault = &record;
    }
    const Operation operation = at_fault != nullptr ? at_fault->kind.operation : Operation::write;
    const Status cause = cause_of(entry.status, operation);
    if (at_fault != nullptr) {
      fault_position_ = sends_.head;
      fault_cause_ = cause;
    }
    confirmed_ = serial;
    const std::uint64_t number = cause == Status::truncated ? (messages_confirmed_ + 1) | of_sender : 0;
    fail(cause, number, native_code_of(entry), ibv_wc_status_str(entry.status));
    return;
  }
  flushing_ = true;
  confirmed_ = serial;
  suspect();
}

// A request was flushed although this side did not ask for it. The cause may be in an entry still to come, or
// on the other side.
void Endpoint::suspect() noexcept {
  if ((state_ != State::up && state_ != State::closing) || suspected_) return;
  suspected_ = true;
  unchanged_ = 0;
  context_.request_service();
}

void Endpoint::received(std::uint64_t context, const ibv_wc& wc, Queue::Out& out) noexcept {
  ++messages_received_;
  if (was_up_ && !silenced_) {
    group_.emit(out, [&](Completion& entry) noexcept { fill_received(entry, context, wc); });
    return;
  }
  if (silenced_ && was_up_) {
    group_.release(1);
    return;
  }
  // The peer is up a little earlier than this side: kept until go_up (CON-5). Its room was reserved.
  Completion entry;
  fill_received(entry, context, wc);
  early_.push_back(entry);
}

void Endpoint::on_received(const ibv_wc& entry, Queue::Out& out) noexcept {
  if (receives_.empty()) return;
  if (entry.status == IBV_WC_SUCCESS) {
    const std::uint64_t context = receives_.front().context;
    if (receives_.front().bounced) [[unlikely]]
      receive_bounces_[receives_.head & (std::bit_ceil(std::uint64_t{receives_.depth()}) - 1)].scatter(
          entry.byte_len);
    ++receives_.head;
    received(context, entry, out);
    return;
  }
  if (entry.status == IBV_WC_WR_FLUSH_ERR) {
    ++receives_flushed_;
    suspect();
    return;
  }
  ++receives_flushed_;
  receive_failed(entry);
}

void Endpoint::receive_failed(const ibv_wc& entry) noexcept {
  switch (entry.status) {
    case IBV_WC_LOC_LEN_ERR:      // as adapters say it
    case IBV_WC_LOC_QP_OP_ERR:    // as Soft-RoCE says it, which takes the receive for malformed
    case IBV_WC_REM_INV_REQ_ERR:  // as the specification names what the sender is told
      receive_at_fault_ = true;
      fail(Status::truncated, messages_received_ + 1, native_code_of(entry),
           "a message is longer than its receive");
      return;
    case IBV_WC_REM_ACCESS_ERR:
      fail(Status::remote_access_error, 0, native_code_of(entry), "the peer used memory it has no right to");
      return;
    default:
      fail(Status::aborted, 0, native_code_of(entry), ibv_wc_status_str(entry.status));
      return;
  }
}

void Endpoint::on_shared_received(const ibv_wc& entry, Queue::Out& out) noexcept {
  const bool good = entry.status == IBV_WC_SUCCESS;
  const SharedReceives::Taken taken = shared_->taken(Tag::number(entry.wr_id), good ? entry.byte_len : 0);
  if (good) [[likely]] {
    received(taken.context, entry, out);
    return;
  }
  // From now on it belongs to this endpoint (RCQ-1), whose end reports it.
  Completion fault = blank(Operation::receive, Status::cancelled);
  fault.context = taken.context;
  if (taken.reported) {
    // Its region was taken away from under it; it was told then.
  } else if (!shared_fault_) {
    shared_fault_ = fault;
  } else {
    group_.release(1);
  }
  if (entry.status == IBV_WC_WR_FLUSH_ERR) {
    suspect();
  } else {
    receive_failed(entry);
  }
}

}  // namespace weft::verbs
