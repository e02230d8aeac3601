// How an endpoint ends: the pair goes to its error state, which flushes what is outstanding; when all of it
// was read, or after a moment the pair is destroyed, the records are handed out (ERR-2, ERR-7).
#include <utility>

#include "context.hpp"
#include "endpoint.hpp"
#include "shared_receives.hpp"

namespace weft::verbs {

namespace {

constexpr std::chrono::milliseconds patience_with_flushing{250};

}  // namespace

void Endpoint::fail(Status cause, std::uint64_t detail, std::int32_t native_code,
                    std::string_view text) noexcept {
  if (state_ != State::up && state_ != State::closing) {
    if (state_ == State::preparing && established_ && !failed_here_) {
      failed_here_ = true;
      events_->failed(cause, detail, native_code, text);
    }
    return;
  }
  change_state(State::broken);
  failed_here_ = true;
  suspected_ = false;
  if (pending_end_) {  // it waits for messages that will not come
    start_ending(provider::EndOrder(*pending_end_));
    return;
  }
  events_->failed(cause, detail, native_code, text);
}

void Endpoint::change_state(State state) noexcept {
  state_ = state;
  credit_ = receive_credit_ = 0;  // found anew by the next post, if any is to be
}

void Endpoint::device_failed(std::string_view text) noexcept {
  suspected_ = false;
  fail(Status::aborted, 0, 0, text);
}

void Endpoint::end(const provider::EndOrder& order) noexcept {
  const engine::HelperEntry entry(group_.gate());
  if (state_ == State::ended || state_ == State::ending) return;
  if (order.after_messages && was_up_ && state_ != State::broken) {
    // The peer's device has the acknowledgements of all of them, so they are here: only to be read.
    group_.drive_all();
    if (state_ != State::broken && messages_received_ < order.messages) {
      pending_end_ = order;
      context_.request_service();
      return;
    }
    if (state_ == State::ending || state_ == State::ended) return;
  }
  start_ending(order);
  if (!try_finish(Clock::now())) context_.request_service();
}

void Endpoint::start_ending(const provider::EndOrder& order) noexcept {
  last_order_ = order;
  pending_end_.reset();
  // What succeeded before is told as such.
  if (was_up_) group_.drive_all();
  change_state(State::ending);
  end_deadline_ = Clock::now() + patience_with_flushing;
  // One request cannot be taken back; this flushes all of them.
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  stopped_ = ibv_modify_qp(pair_.get(), &attributes, IBV_QP_STATE) == 0;
  context_.request_service();
}

// Every outstanding request came back.
bool Endpoint::flushed() const noexcept {
  return confirmed_ == serial_ && receives_issued_ - receives_.head == receives_flushed_;
}

bool Endpoint::try_finish(Clock::time_point now) noexcept {
  if (state_ != State::ending) return state_ == State::ended;
  group_.drive_all();
  if (!flushed() && now < end_deadline_) return false;
  finish();
  return true;
}

// A pair that moves nothing any more and has nothing outstanding uses no memory of the program's.
bool Endpoint::pair_is_quiet() const noexcept { return stopped_ && shared_ == nullptr && flushed(); }

void Endpoint::release_pair() noexcept {
  if (place_.queue == nullptr) return;
  if (shared_ != nullptr && pair_) {
    // Entries of shared receives name the pair: they are read before it goes.
    group_.drive_all();
  }
  pair_.reset();  // from here on the device touches no memory of it
  if (state_ >= State::ending) context_.note_pair_gone();
  group_.drive_all();  // what it left in the device's queue; then its place can be another's
  if (shared_ != nullptr) group_.forget_pair(number_);
  group_.detach(place_, device_entries_, shared_);
  place_ = {};
}

void Endpoint::finish() noexcept {
  // The kernel takes milliseconds to destroy a pair: where nothing depends on it, many endpoints that end at
  // once do not wait for each other's.
  if (pair_is_quiet()) {
    context_.request_service();
  } else {
    release_pair();
  }
  change_state(State::ended);
  end_due_ = was_up_;
  find_fault();
  if (silenced_) {
    drop_records();
  } else {
    // Messages that came before the endpoint was up, which it now never will be.
    for (Completion& completion : early_) {
      completion.status = Status::cancelled;
      completion.bytes = 0;
      group_.push(completion);
    }
    early_ = {};
    if (send_reports_.has_more()) send_queue_.add(send_reports_);
    if (receive_reports_.has_more()) group_.add(receive_reports_);
  }
  events_->finished();
}

void Endpoint::silence() noexcept {
  const engine::HelperEntry entry(group_.gate());
  silence_inside();
}

void Endpoint::silence_inside() noexcept {
  silenced_ = true;
  completes_here_ = false;
  note_simple_sends();
  note_simple_receives(false);
  connect_due_ = false;
  send_queue_.remove(send_reports_);
  group_.remove(connect_report_);
  group_.remove(receive_reports_);
  send_queue_.drop_entries_of(id_);
  if (&group_ != &send_queue_) group_.drop_entries_of(id_);
  if (state_ == State::ended) drop_records();
}

// Gives back what the records hold without reporting them.
void Endpoint::drop_records() noexcept {
  for (; sends_.head != sends_.tail; ++sends_.head) {
    if (sends_.front().kind.signalled) send_queue_.release(1);
  }
  held_ = 0;
  group_.release(static_cast<std::uint32_t>(receives_.size()));
  receives_.head = receives_.tail;
  if (shared_fault_) group_.release(1);
  shared_fault_.reset();
  group_.release(static_cast<std::uint32_t>(early_.size()));
  early_ = {};
  end_due_ = false;
}

// The operation at fault has the cause, the others are cancelled (ERR-2). When the other side found the
// fault, it named the message by its number.
void Endpoint::find_fault() noexcept {
  const std::uint64_t number = last_order_.detail & ~of_sender;
  if (failed_here_ || last_order_.cause != Status::truncated || number == 0) return;
  if ((last_order_.detail & of_sender) != 0) {
    receive_at_fault_ = receive_at_fault_ || number == messages_received_ + 1;
    return;
  }
  std::uint64_t counted = messages_confirmed_;
  for (std::uint64_t at = sends_.head; at != sends_.tail && fault_position_ == none; ++at) {
    if (!sends_[at].kind.message || ++counted != number) continue;
    fault_position_ = at;
    fault_cause_ = Status::truncated;
  }
}

Status Endpoint::status_at_end(std::uint64_t position) const noexcept {
  if (position != fault_position_) return Status::cancelled;
  // What this side saw may be less than what the other side knows.
  const Status cause = last_order_.cause;
  const bool known =
      cause == fault_cause_ || cause == Status::truncated || cause == Status::remote_access_error;
  return known ? cause : Status::cancelled;
}

Completion Endpoint::blank(Operation operation, Status status) const noexcept {
  Completion entry;
  entry.operation = operation;
  entry.status = status;
  entry.endpoint_id = id_;
  entry.user_value = user_value_;
  return entry;
}

std::size_t Endpoint::SendReports::hand_out(Completion* out, std::size_t room,
                                            std::uint32_t& released) noexcept {
  Endpoint& e = endpoint_;
  std::size_t count = 0;
  for (; count < room && e.sends_.head != e.sends_.tail; ++e.sends_.head) {
    const SendRecord& record = e.sends_.front();
    Completion& entry = out[count++];
    entry = e.blank(record.kind.operation, e.status_at_end(e.sends_.head));
    entry.context = record.context;
    entry.native_code = e.last_order_.native_code;
    if (record.kind.signalled) ++released;
  }
  return count;
}

bool Endpoint::SendReports::has_more() const noexcept {
  return endpoint_.state_ == State::ended && !endpoint_.sends_.empty();
}

std::size_t Endpoint::ConnectReport::hand_out(Completion* out, std::size_t room,
                                              std::uint32_t& /*released*/) noexcept {
  if (!endpoint_.connect_due_ || room == 0) return 0;
  endpoint_.connect_due_ = false;
  *out = endpoint_.blank(Operation::connect, Status::ok);
  return 1;
}

std::size_t Endpoint::ReceiveReports::hand_out(Completion* out, std::size_t room,
                                               std::uint32_t& released) noexcept {
  Endpoint& e = endpoint_;
  std::size_t count = 0;
  // The first of them is the one that a message had taken.
  const auto first_status = [&e]() noexcept {
    const bool truncated =
        std::exchange(e.receive_at_fault_, false) && e.last_order_.cause == Status::truncated;
    return truncated ? Status::truncated : Status::cancelled;
  };
  if (count < room && e.shared_fault_) {
    out[count] = *e.shared_fault_;
    out[count].status = first_status();
    out[count++].native_code = e.last_order_.native_code;
    e.shared_fault_.reset();
    ++released;
  }
  for (; count < room && !e.receives_.empty(); ++e.receives_.head) {
    out[count] = e.blank(Operation::receive, first_status());
    out[count].context = e.receives_.front().context;
    out[count++].native_code = e.last_order_.native_code;
    ++released;
  }
  if (count < room && e.end_due_) {
    e.end_due_ = false;
    out[count] = e.blank(Operation::endpoint_ended, e.last_order_.cause);
    out[count++].native_code = e.last_order_.native_code;
  }
  return count;
}

bool Endpoint::ReceiveReports::has_more() const noexcept {
  const Endpoint& e = endpoint_;
  return e.state_ == State::ended && (e.shared_fault_ || !e.receives_.empty() || e.end_due_);
}

}  // namespace weft::verbs
