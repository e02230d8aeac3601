#include "shared_receives.hpp"

#include "context.hpp"
#include "endpoint.hpp"
#include "segments.hpp"

namespace weft::engine {

SharedReceives::SharedReceives(Context& context, Group& group, std::uint32_t depth, std::uint64_t user_value)
    : context_(context), group_(group), receives_(depth), user_value_(user_value) {
  const HelperEntry entry(group_.gate());
  group_.join(*this);
}

SharedReceives::~SharedReceives() {
  const HelperEntry entry(group_.gate());
  group_.part(*this);
  group_.remove(*this);
  for (; !receives_.empty(); ++receives_.head) {
    if (receives_.front().spill != nullptr) group_.spills().give(receives_.front().spill);
    group_.release(1);
  }
}

PostResult SharedReceives::post(const ReceiveRequest* requests, std::size_t count) noexcept {
  const Entry entry(group_.gate());
  PostResult result;
  while (result.accepted < count) {
    ReceiveRecord record;
    result.status = make_receive(context_.regions(), group_.spills(), requests[result.accepted], record);
    if (result.status != Status::ok) break;
    if (receives_.full() || !group_.reserve()) {
      if (record.spill != nullptr) group_.spills().give(record.spill);
      result.status = Status::again;
      break;
    }
    receives_.back() = record;
    ++receives_.tail;
    ++result.accepted;
  }
  if (receives_.size() >= low_water_) below_ = false;
  while (first_waiting_ != nullptr && !receives_.empty()) {
    Endpoint& endpoint = *first_waiting_;
    forget(endpoint);
    endpoint.match_waiting();
  }
  return result;
}

void SharedReceives::set_low_water(std::uint32_t mark) noexcept {
  const Entry entry(group_.gate());
  low_water_ = mark;
  below_ = receives_.size() < mark;
}

void SharedReceives::note_low_water() noexcept {
  below_ = true;
  low_water_due_ = true;
  group_.add(*this);
}

void SharedReceives::wait(Endpoint& endpoint) noexcept {
  if (endpoint.waits_for_shared_) return;
  endpoint.waits_for_shared_ = true;
  endpoint.next_waiting_ = nullptr;
  (first_waiting_ == nullptr ? first_waiting_ : last_waiting_->next_waiting_) = &endpoint;
  last_waiting_ = &endpoint;
}

void SharedReceives::forget(Endpoint& endpoint) noexcept {
  if (!endpoint.waits_for_shared_) return;
  endpoint.waits_for_shared_ = false;
  Endpoint* before = nullptr;
  for (Endpoint* at = first_waiting_; at != &endpoint; at = at->next_waiting_) before = at;
  (before == nullptr ? first_waiting_ : before->next_waiting_) = endpoint.next_waiting_;
  if (last_waiting_ == &endpoint) last_waiting_ = before;
}

bool SharedReceives::uses(std::uint64_t region) const noexcept {
  for (std::uint64_t at = receives_.head; at != receives_.tail; ++at) {
    if (uses_region(receives_[at].pieces(), region)) return true;
  }
  return false;
}

void SharedReceives::cancel(std::uint64_t region) noexcept {
  std::uint64_t kept = receives_.head;
  for (std::uint64_t at = receives_.head; at != receives_.tail; ++at) {
    ReceiveRecord& record = receives_[at];
    if (!uses_region(record.pieces(), region)) {
      receives_[kept++] = record;
      continue;
    }
    if (record.spill != nullptr) group_.spills().give(record.spill);
    Completion entry;
    entry.operation = Operation::receive;
    entry.status = Status::cancelled;
    entry.context = record.context;
    entry.user_value = user_value_;
    group_.push(entry);
  }
  receives_.tail = kept;
}

std::size_t SharedReceives::hand_out(Completion* out, std::size_t room,
                                     std::uint32_t& /*released*/) noexcept {
  if (room == 0 || !low_water_due_) return 0;
  low_water_due_ = false;
  out[0] = {};
  out[0].operation = Operation::low_water;
  out[0].user_value = user_value_;
  return 1;
}

}  // namespace weft::engine
