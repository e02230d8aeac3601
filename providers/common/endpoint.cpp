// An endpoint's life: making, going up, closing, ending.
#include "endpoint.hpp"

#include <algorithm>
#include <utility>

#include "context.hpp"
#include "segments.hpp"
#include "shared_receives.hpp"

namespace weft::engine {

namespace {

constexpr std::uint32_t shared_places =
    2;  // receives taken over from a shared queue: one arriving, one granted

}  // namespace

Endpoint::Endpoint(Context& context, Group& group, const provider::EndpointRequest& request)
    : group_(group),
      send_queue_(*static_cast<Queue*>(request.send_queue)),
      regions_(context.regions()),
      copy_below_(context.options().copy_below),
      inline_limit_(std::clamp(request.max_inline, std::uint32_t{32}, max_inline)),
      id_(request.id),
      user_value_(request.user_value),
      strict_sends_(context.strict_sends()),
      strict_writes_(context.strict_writes()),
      sends_(request.send_depth),
      receives_(request.shared_receives != nullptr ? shared_places : request.receive_depth),
      shared_(static_cast<SharedReceives*>(request.shared_receives)),
      context_(context),
      events_(request.events),
      limits_(context.limits()),
      reads_(context.options().max_outstanding_reads),
      answers_(context.options().max_outstanding_reads) {
  may_come_.window = context.options().window;
  if (context.options().offer_from != 0)
    offers_ = std::make_unique<Offers>(context.options().fetches_at_once);
  limits_.send_depth = request.send_depth;
  limits_.receive_depth = shared_ != nullptr ? shared_->depth() : request.receive_depth;
  limits_.max_inline = inline_limit_;
  control_.reserve(256);
  answered_from_.reserve(Outgoing::max_pieces);
  if (static_cast<Queue*>(&group_) != &send_queue_) {
    const HelperEntry entry(send_queue_.gate());
    send_queue_.share();
  }
  const HelperEntry entry(group_.gate());
  group_.join(*this);
}

Endpoint::~Endpoint() {
  const HelperEntry entry(group_.gate());
  if (drains_) group_.drain_ends();
  silence_inside();
  drop_records();
  if (shared_ != nullptr) shared_->forget(*this);
  group_.part(*this);
}

std::vector<std::byte> Endpoint::blob(const provider::PathAddresses& /*path*/) {
  std::vector<std::byte> bytes(EngineBlob::size);
  EngineBlob{context_.options().window, shared_ != nullptr, strict_sends_}.encode(
      std::span<std::byte, EngineBlob::size>(bytes.data(), EngineBlob::size));
  return bytes;
}

bool Endpoint::establish(const provider::PeerParameters& peer) {
  const auto blob = EngineBlob::decode(peer.blob);
  if (!blob) {
    throw Error(Status::protocol,
                "the peer's endpoint description is not one of this provider's; is the peer's weft of "
                "another version, or not weft at all?");
  }
  const HelperEntry entry(group_.gate());
  const std::uint32_t segments = limits_.max_segments;
  limits_ = peer.limits;
  limits_.max_inline = inline_limit_;
  limits_.max_segments = segments;
  const auto most_reads = static_cast<std::uint32_t>(reads_.size());
  limits_.max_outstanding_reads = std::clamp(limits_.max_outstanding_reads, std::uint32_t{1}, most_reads);
  sends_.shrink_depth(std::max(limits_.send_depth, std::uint32_t{1}));
  // Slots of unsignalled one-sided operations come back in quarters of the depth (CMP-2).
  may_send_.ask_every = std::max(sends_.depth() / 4, std::uint32_t{1});
  if (shared_ == nullptr) receives_.shrink_depth(std::max(limits_.receive_depth, std::uint32_t{1}));
  may_send_.window = blob->window;
  peer_shares_receives_ = blob->shared_receives;
  may_send_.grants_singly = peer_shares_receives_;
  window_can_wait_ = shared_ != nullptr && !blob->completes_when_matched;
  return true;
}

void Endpoint::go_up() noexcept {
  const HelperEntry entry(group_.gate());
  if (state_ != State::preparing) return;
  state_ = State::up;
  was_up_ = true;
  connect_due_ = true;
  group_.add(connect_report_);
  attach();
  push_output();
}

bool Endpoint::withdraw_connect_report() noexcept {
  const HelperEntry entry(group_.gate());
  const bool was_due = connect_due_;
  connect_due_ = false;
  group_.remove(connect_report_);
  return was_due;
}

Endpoint::Imported Endpoint::import_key(std::span<const std::byte> bytes) {
  const auto key = Key::decode(bytes);
  if (!key) {
    throw Error(Status::invalid_argument, "cannot import the key: its " + std::to_string(bytes.size()) +
                                              " bytes are not a key, or were altered; a "
                                              "key of this provider has " +
                                              std::to_string(Key::size) + " bytes and is carried unchanged");
  }
  const HelperEntry entry(group_.gate());
  if (state_ != State::up) {
    throw Error(Status::not_connected, "cannot import the key: the endpoint is not up");
  }
  std::size_t slot = 0;
  while (slot < imports_.size() && !slot_free(slot)) ++slot;
  constexpr std::size_t most = 1U << 16;
  if (slot == most) {
    throw Error(Status::resource_limit,
                "cannot import the key: " + std::to_string(most) +
                    " keys are imported on this endpoint, the largest number; drop some");
  }
  // A token names slot and use, so that it is good on this endpoint only and never comes back.
  static std::atomic<std::uint64_t> next_use{1};
  if (slot == imports_.size()) imports_.emplace_back();
  imports_[slot] = {(next_use.fetch_add(1) << 32) | slot, key->length, key->access, key->misalignment, false};
  std::array<std::byte, sizeof(wire::BindExtension)> extension;
  wire::store(extension.data(), wire::BindExtension{key->region, {key->secret.low, key->secret.high}});
  add_control(wire::Type::bind, slot, extension);
  push_output();
  return {imports_[slot].token, key->length, key->access};
}

void Endpoint::release_key(std::uint64_t token) noexcept {
  const HelperEntry entry(group_.gate());
  const std::uint64_t slot = token & 0xffffffff;
  if (slot >= imports_.size() || imports_[slot].token != token) return;
  imports_[slot].access = Access::none;
  imports_[slot].released = true;
}

// The slot can be bound anew: the binding leaves before what is not yet framed, so nothing there may still
// need it.
bool Endpoint::slot_free(std::size_t slot) const noexcept {
  if (imports_[slot].token != 0 && !imports_[slot].released) return false;
  for (std::uint64_t at = framing_; at != sends_.tail; ++at) {
    if (sends_[at].slot == slot && sends_[at].operation != Operation::send) return false;
  }
  return true;
}

void Endpoint::fail(Status cause, std::uint64_t detail, std::int32_t native_code,
                    std::string_view text) noexcept {
  if (!moving()) return;
  if (pulling_) stop_pulling();
  // Regions that answers were offered from can be deregistered from here on (MEM-5).
  if (offers_open_) withdraw_offers();
  offers_open_ = false;
  state_ = State::broken;
  // A lost path is not our finding: the peer's word on the cause may still come, and speaks of our
  // operations.
  failed_here_ = cause != Status::peer_lost;
  events_->failed(cause, detail, native_code, text);
}

void Endpoint::path_broken(std::int32_t native_code, std::string_view text) noexcept {
  fail(Status::peer_lost, 0, native_code, text);
  end_if_unreachable();
}

// The peer said how many messages it sent, but the path is gone and fewer came: nothing more to wait for.
void Endpoint::end_if_unreachable() noexcept {
  if (!pending_end_ || moving() || state_ == State::ended) return;
  if (may_come_.messages_arrived - torn_messages() < pending_end_->messages) end_now(*pending_end_);
}

void Endpoint::drain() noexcept {
  const HelperEntry entry(group_.gate());
  if (state_ != State::up) return;
  state_ = State::closing;
  drains_ = true;
  group_.drain_begins();
  push_output();
  retire();
}

void Endpoint::end(const provider::EndOrder& order) noexcept {
  const HelperEntry entry(group_.gate());
  if (state_ == State::ended) return;
  if (order.after_messages && may_come_.messages_matched < order.messages && was_up_) {
    pending_end_ = order;
    end_if_unreachable();
    return;
  }
  end_now(order);
}

// From here the records are handed out as they are, by the two reporters (ERR-2, ERR-7).
void Endpoint::end_now(const provider::EndOrder& order) noexcept {
  if (state_ == State::ended) return;
  if (drains_) group_.drain_ends();
  drains_ = false;
  // A copy: the order may be the pending one.
  last_order_ = order;
  pending_end_.reset();
  if (pulling_) stop_pulling();
  if (offers_open_) withdraw_offers();
  offers_open_ = false;
  state_ = State::ended;
  detach();
  if (shared_ != nullptr) shared_->forget(*this);
  group_.forget_held_back(*this);
  holds_back_ = false;
  kept_.reset();
  stored_.reset();
  give_back_spills();
  end_due_ = was_up_;
  if (silenced_) {
    drop_records();
  } else {
    if (send_reports_.has_more()) send_queue_.add(send_reports_);
    if (receive_reports_.has_more()) group_.add(receive_reports_);
  }
  events_->finished();
}

void Endpoint::silence() noexcept {
  const HelperEntry entry(group_.gate());
  silence_inside();
}

void Endpoint::silence_inside() noexcept {
  silenced_ = true;
  connect_due_ = false;
  send_queue_.remove(send_reports_);
  group_.remove(connect_report_);
  group_.remove(receive_reports_);
  send_queue_.drop_entries_of(id_);
  if (static_cast<Queue*>(&group_) != &send_queue_) group_.drop_entries_of(id_);
  if (state_ == State::ended) drop_records();
}

// Records without spills can be handed out under the gate of another group.
void Endpoint::give_back_spills() noexcept {
  for (std::uint64_t at = sends_.head; at != sends_.tail; ++at) {
    if (sends_[at].spill != nullptr) group_.spills().give(std::exchange(sends_[at].spill, nullptr));
  }
  for (std::uint64_t at = receives_.head; at != receives_.tail; ++at) {
    if (receives_[at].spill != nullptr) group_.spills().give(std::exchange(receives_[at].spill, nullptr));
  }
}

// Gives back what the records hold without reporting them.
void Endpoint::drop_records() noexcept {
  give_back_spills();
  for (; !sends_.empty(); ++sends_.head) {
    if (!has(sends_.front().flags, Flags::unsignalled)) send_queue_.release(1);
  }
  group_.release(static_cast<std::uint32_t>(receives_.size()));
  receives_.head = receives_.tail;
  framing_ = sends_.head;
  end_due_ = false;
}

bool Endpoint::remote_operation_uses(std::uint64_t token) const noexcept {
  if (!moving()) return false;
  if (arriving_ != Transfer::Kind::none && operation_.sink.uses(token)) return true;
  if (offers_ != nullptr && (fetches_into(token) || offers_->answers_from(token))) return true;
  for (std::uint32_t at = answers_head_; at != answers_tail_; ++at) {
    if (answers_[at & (answers_.size() - 1)].piece.region == token) return true;
  }
  return kept_ != nullptr &&
         std::find(answered_from_.begin(), answered_from_.end(), token) != answered_from_.end();
}

// The operation the peer found at fault has the cause, the others are cancelled (ERR-2).
Status Endpoint::status_at_end(const SendRecord& record) const noexcept {
  const Status cause = last_order_.cause;
  if (failed_here_ || last_order_.detail == 0 ||
      record.number != static_cast<std::uint32_t>(last_order_.detail)) {
    return Status::cancelled;
  }
  const bool message = record.operation == Operation::send;
  return cause == (message ? Status::truncated : Status::remote_access_error) ? cause : Status::cancelled;
}

std::size_t Endpoint::SendReports::hand_out(Completion* out, std::size_t room,
                                            std::uint32_t& released) noexcept {
  Endpoint& e = endpoint_;
  std::size_t count = 0;
  for (; count < room && !e.sends_.empty(); ++e.sends_.head) {
    SendRecord& record = e.sends_.front();
    Completion& entry = out[count++];
    entry = e.blank(record.operation, e.status_at_end(record));
    entry.context = record.context;
    entry.native_code = e.last_order_.native_code;
    if (!has(record.flags, Flags::unsignalled)) ++released;
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
  for (; count < room && !e.receives_.empty(); ++e.receives_.head) {
    ReceiveRecord& record = e.receives_.front();
    const bool at_fault = e.receive_at_fault_;
    e.receive_at_fault_ = false;
    out[count] = e.blank(Operation::receive, at_fault ? Status::truncated : Status::cancelled);
    out[count].context = record.context;
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
  return e.state_ == State::ended && (!e.receives_.empty() || e.end_due_);
}

}  // namespace weft::engine
