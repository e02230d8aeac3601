// An endpoint's life: making, going up, closing; keys of the peer.
#include "endpoint.hpp"

#include <algorithm>
#include <bit>
#include <random>

#include "context.hpp"
#include "errors.hpp"
#include "shared_receives.hpp"

namespace weft::verbs {

namespace {

constexpr std::uint32_t least_inline = 32;  // OPS-6
constexpr std::uint32_t most_inline = 512;

}  // namespace

Endpoint::Endpoint(Context& context, Queue& group, const provider::EndpointRequest& request)
    : context_(context),
      group_(group),
      gate_(group.gate()),
      send_queue_(*static_cast<Queue*>(request.send_queue)),
      shared_(static_cast<SharedReceives*>(request.shared_receives)),
      events_(request.events),
      user_value_(request.user_value),
      id_(request.id),
      completes_here_(&group_ == &send_queue_),
      limits_(context.attributes().limits),
      sends_(std::clamp(request.send_depth, 1U, limits_.send_depth)),
      signals_(sends_.depth()),
      receives_(shared_ != nullptr ? 0 : std::clamp(request.receive_depth, 1U, limits_.receive_depth)) {
  preset_ = presets_.data();
  sent_ = blank(Operation::send, Status::ok);
  received_ = blank(Operation::receive, Status::ok);
  limits_.send_depth = sends_.depth();
  limits_.receive_depth = shared_ != nullptr ? shared_->depth() : receives_.depth();
  limits_.max_inline = std::clamp(request.max_inline, least_inline, most_inline);
  device_depth_ = limits_.send_depth + own_requests;
  device_entries_ = device_depth_ + receives_.depth();
  const std::size_t send_places = std::bit_ceil(std::uint64_t{sends_.depth()});
  inline_mask_ = send_places - 1;
  send_regions_ = std::make_unique_for_overwrite<RegionNames[]>(send_places);
  plans_ = std::make_unique_for_overwrite<Plan[]>(send_places);
  if (receives_.depth() != 0) {
    const std::size_t receive_places = std::bit_ceil(std::uint64_t{receives_.depth()});
    receive_regions_ = std::make_unique_for_overwrite<RegionNames[]>(receive_places);
    receive_plans_ = std::make_unique_for_overwrite<ReceivePlan[]>(receive_places);
    if (context.device_segments() < segments_per_request)
      receive_bounces_ = std::make_unique<Bounce[]>(receive_places);
  }
  constexpr std::uint32_t packet_numbers = 1U << 24;
  first_packet_ = std::random_device{}() % packet_numbers;

  const engine::HelperEntry entry(group_.gate());
  place_ = group_.attach(*this, device_entries_, shared_);
  try {
    tag_ = Tag::of(place_.slot, 0);
    note_simple_sends();
    receive_preset_.work.wr_id = Tag::receive | tag_;
    create_pair(limits_.max_inline);
    reserve_inline_bytes();
    if (shared_ != nullptr) group_.name_pair(number_, *this);
    group_.join(*this);
  } catch (...) {
    release_pair();
    throw;
  }
}

Endpoint::~Endpoint() {
  if (child_) return;
  const engine::HelperEntry entry(group_.gate());
  silence_inside();
  release_pair();
  drop_records();
  add_counts(group_.counts());
  group_.part(*this);
}

void Endpoint::enter_child() noexcept {
  child_ = true;
  change_state(State::ended);
  static_cast<void>(pair_.release());
  static_cast<void>(inline_region_.release());
  static_cast<void>(receive_bounces_.release());
  bounce_.leave_to_parent();
}

void Endpoint::go_up() noexcept {
  const engine::HelperEntry entry(group_.gate());
  if (state_ != State::preparing) return;
  change_state(State::up);
  was_up_ = true;
  note_simple_receives(!silenced_ && receive_bounces_ == nullptr);  // what arrives is in its place
  connect_due_ = true;
  last_heard_ = Clock::now();
  if (!silenced_) group_.add(connect_report_);
  for (const Completion& completion : early_) {
    if (silenced_) {
      group_.release(1);
    } else {
      group_.push(completion);
    }
  }
  early_ = {};
  context_.request_service();  // from now on its path is watched
}

bool Endpoint::withdraw_connect_report() noexcept {
  const engine::HelperEntry entry(group_.gate());
  const bool was_due = connect_due_;
  connect_due_ = false;
  group_.remove(connect_report_);
  return was_due;
}

Endpoint::Imported Endpoint::import_key(std::span<const std::byte> bytes) {
  const auto key = Key::decode(bytes);
  if (!key) {
    throw Error(Status::invalid_argument, "cannot import the key: its " + std::to_string(bytes.size()) +
                                              " bytes are not a key, or were altered; a key of this provider "
                                              "has " +
                                              std::to_string(Key::size) + " bytes and is carried unchanged");
  }
  const engine::HelperEntry entry(group_.gate());
  if (state_ != State::up)
    throw Error(Status::not_connected, "cannot import the key: the endpoint is not up");
  std::size_t slot = 0;
  while (slot < imports_.size() && imports_[slot].token != 0) ++slot;
  constexpr std::size_t most = 1U << 16;
  if (slot == most) {
    throw Error(Status::resource_limit, "cannot import the key: " + std::to_string(most) +
                                            " keys are imported on this endpoint, the largest number; drop "
                                            "some");
  }
  // A token names slot and use, so that it is good on this endpoint only and never comes back.
  static std::atomic<std::uint64_t> next_use{1};
  if (slot == imports_.size()) imports_.emplace_back();
  imports_[slot] = {(next_use.fetch_add(1) << 32) | slot, key->address, key->length, key->native,
                    key->access};
  return {imports_[slot].token, key->length, key->access};
}

void Endpoint::release_key(std::uint64_t token) noexcept {
  const engine::HelperEntry entry(group_.gate());
  const std::uint64_t slot = token & 0xffffffff;
  // Requests under way carry the hardware's key themselves.
  if (slot < imports_.size() && imports_[slot].token == token) imports_[slot] = {};
  forget_key(token);
}

void Endpoint::drain() noexcept {
  const engine::HelperEntry entry(group_.gate());
  if (state_ != State::up) return;
  change_state(State::closing);
  set_care(true);
  group_.drive_all();
  confirm_soon();
  after_confirm();
  context_.request_service();
}

bool Endpoint::uses(std::uint64_t region) const noexcept {
  if (state_ == State::ended) return false;
  const auto names = [region](std::uint64_t first, bool more_regions, const RegionNames& more) {
    return first == region || (more_regions && std::find(more.begin(), more.end(), region) != more.end());
  };
  const std::uint64_t send_mask = inline_mask_;
  for (std::uint64_t at = sends_.head; at != sends_.tail; ++at) {
    if (names(sends_[at].region, sends_[at].kind.more_regions, send_regions_[at & send_mask])) return true;
  }
  const std::uint64_t receive_mask = std::bit_ceil(std::uint64_t{receives_.depth()}) - 1;
  for (std::uint64_t at = receives_.head; at != receives_.tail; ++at) {
    if (names(receives_[at].region, receives_[at].more_regions, receive_regions_[at & receive_mask]))
      return true;
  }
  return false;
}

void Endpoint::confirm_soon() noexcept {
  if (state_ != State::up && state_ != State::closing) return;
  push_held();
  if (serial_ != confirmed_ && signals_.trailing() && !own_open_) static_cast<void>(post_own(false));
}

Endpoint::Clock::time_point Endpoint::serve(Clock::time_point now) noexcept {
  using namespace std::chrono_literals;
  constexpr auto soon = 2ms;
  constexpr auto tail_after = 30ms;
  if (receives_issued_ != receives_.tail && state_ <= State::closing) {
    push_receives();
    if (state_ == State::preparing) return now + soon;
  }
  switch (state_) {
    case State::preparing:
    case State::broken:
    case State::ended:
      return Clock::time_point::max();
    case State::ending:
      return try_finish(now) ? Clock::time_point::max() : now + soon;
    case State::up:
    case State::closing:
      break;
  }
  if (suspected_) {
    // The pair left its good state and nothing told why: the other side did it.
    if (unchanged_++ > 0) {
      fail(Status::peer_lost, 0, IBV_WC_WR_FLUSH_ERR,
           "the device gave the connection up: " +
               std::string("its requests were flushed without a cause on this side"));
      return Clock::time_point::max();
    }
    return now + soon;
  }
  if (pending_end_) {
    if (messages_received_ >= pending_end_->messages) {
      start_ending(provider::EndOrder(*pending_end_));
      return now + soon;
    }
    return now + soon;
  }
  if (confirmed_ != seen_confirmed_ || serial_ == confirmed_) {
    if (confirmed_ != seen_confirmed_) last_heard_ = now;
    seen_confirmed_ = confirmed_;
  }
  if (state_ == State::closing) {
    confirm_soon();
    after_confirm();
    return now + soon;
  }
  const bool lacks_receives = context_.fabric().port().software() && !dry_ && !has_receives();
  if (lacks_receives && seen_dry_) expect_dry(true);
  seen_dry_ = lacks_receives && !dry_;
  const bool open = serial_ != confirmed_ || held_ != 0;
  if (open) {
    push_held();
    // Nothing was posted since the last round: what is not confirmed gets company of our own.
    if (serial_ == seen_serial_) {
      if (signals_.trailing() && !own_open_) static_cast<void>(post_own(false));
    }
    seen_serial_ = serial_;
    // Nothing of it that would tell when there is room: the device refused it.
    return now + (serial_ == confirmed_ ? soon : tail_after);
  }
  if (receives_issued_ != receives_.tail) return now + soon;
  seen_serial_ = serial_;
  const auto probe_at = last_heard_ + context_.fabric().timers().probe_after;
  if (now < probe_at) return seen_dry_ ? std::min(probe_at, now + tail_after) : probe_at;
  static_cast<void>(post_own(true));
  return now + tail_after;
}

}  // namespace weft::verbs
