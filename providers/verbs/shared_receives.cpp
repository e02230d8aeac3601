#include "shared_receives.hpp"

#include <algorithm>
#include <cerrno>

#include "context.hpp"
#include "endpoint.hpp"
#include "errors.hpp"
#include "queue.hpp"
#include "signals.hpp"

namespace weft::verbs {

Status place_receive(const Context& context, const ReceiveRequest& request, std::uint32_t most_segments,
                     ibv_sge* places, std::uint32_t& count) noexcept {
  // No message is longer, so no place needs to be.
  constexpr std::uint64_t most = std::uint64_t{1} << 31;
  if (request.segments.size() > most_segments) return Status::invalid_argument;
  for (const Segment& segment : request.segments) {
    if (segment.length == 0) continue;
    const engine::RegionEntry* region = context.regions().find(segment.region);
    if (region == nullptr || !engine::inside(segment.offset, segment.length, region->length) ||
        !has(region->access, Access::local_write))
      return Status::invalid_argument;
    places[count++] = {reinterpret_cast<std::uint64_t>(region->address) + segment.offset,
                       static_cast<std::uint32_t>(std::min(segment.length, most)),
                       static_cast<std::uint32_t>(region->native)};
  }
  return Status::ok;
}

bool bounce_receive(const Context& context, Bounce& bounce, ibv_sge* places, std::uint32_t& count) noexcept {
  std::uint64_t length = 0;
  for (std::uint32_t i = 0; i < count; ++i) length += places[i].length;
  length = std::min(length, context.longest_piece());  // no message is longer
  if (!bounce.reserve(context.fabric(), length)) return false;
  bounce.remember(places, count);
  places[0] = bounce.place(length);
  count = 1;
  return true;
}

SharedReceives::SharedReceives(Context& context, Queue& group, std::uint32_t depth, std::uint64_t user_value)
    : context_(context), group_(group), user_value_(user_value), depth_(depth) {
  const Fabric& fabric = context.fabric();
  const auto most = std::min(static_cast<std::uint32_t>(std::max(fabric.port().limits.max_srq_wr, 0)),
                             context.attributes().limits.receive_depth);
  if (depth > most) {
    throw Error(Status::resource_limit, "cannot make a shared receive queue of " + std::to_string(depth) +
                                            " receives: device " + fabric.port().name + " takes at most " +
                                            std::to_string(most));
  }
  ibv_srq_init_attr wanted{};
  wanted.attr.max_wr = depth;
  wanted.attr.max_sge = context.device_segments();
  shared_.reset(ibv_create_srq(fabric.pair_domain(), &wanted));
  if (!shared_)
    fail_call("cannot make a shared receive queue of " + std::to_string(depth) + " receives on device " +
                  fabric.port().name,
              errno);
  slots_.resize(depth);
  if (context.device_segments() < segments_per_request) bounces_ = std::make_unique<Bounce[]>(depth);
  free_.reserve(depth);
  waiting_.reserve(depth);
  for (std::uint32_t slot = depth; slot-- > 0;) free_.push_back(slot);
  const engine::HelperEntry entry(group_.gate());
  group_.join(*this);
}

SharedReceives::~SharedReceives() {
  const engine::HelperEntry entry(group_.gate());
  group_.part(*this);
  group_.remove(*this);
  group_.release(posted_);
}

void SharedReceives::ring() noexcept {
  ReceiveChain& chain = group_.receive_chain();
  if (chain.empty()) return;
  const std::size_t count = chain.count();
  std::size_t taken = 0;
  if (waiting_.empty()) [[likely]] {
    int code = 0;
    taken = chain.hand_over(
        [this](ibv_recv_wr* first, ibv_recv_wr** refused) {
          return ibv_post_srq_recv(shared_.get(), first, refused);
        },
        code);
    group_.counts().add(Count::receive_doorbells);
    group_.counts().add(Count::receives, taken);
  } else {
    chain.clear();
  }
  if (taken == count) return;
  // Our count is right, so what the device says is passing, or it is gone, which its event will say.
  for (std::size_t i = taken; i < count; ++i) {
    const std::uint32_t slot = Tag::number(chain.at(i).wr_id);
    slots_[slot].plan.keep(chain.at(i));
    waiting_.push_back(slot);  // has room for all of them
  }
  context_.request_service();
}

bool SharedReceives::push_waiting() noexcept {
  std::size_t taken = 0;
  for (; taken < waiting_.size(); ++taken) {
    ibv_recv_wr work{};
    ibv_recv_wr* refused = nullptr;
    work.wr_id = Tag::receive | Tag::shared | Tag::of(0, waiting_[taken]);
    slots_[waiting_[taken]].plan.show(work);
    group_.counts().add(Count::receive_doorbells);
    if (ibv_post_srq_recv(shared_.get(), &work, &refused) != 0) break;
    group_.counts().add(Count::receives);
  }
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(taken));
  return waiting_.empty();
}

PostResult SharedReceives::post(const ReceiveRequest* requests, std::size_t count) noexcept {
  const engine::Entry entry(group_.gate());
  PostResult result;
  ReceiveChain& chain = group_.receive_chain();
  if (!waiting_.empty()) [[unlikely]]
    static_cast<void>(push_waiting());
  while (result.accepted < count) {
    if (chain.full()) ring();
    const ReceiveRequest& request = requests[result.accepted];
    ibv_recv_wr& work = chain.next();
    std::uint32_t places = 0;
    result.status =
        place_receive(context_, request, context_.attributes().limits.max_segments, chain.places(), places);
    if (result.status != Status::ok) break;
    if (free_.empty() || !group_.reserve()) {
      result.status = Status::again;
      break;
    }
    const std::uint32_t number = free_.back();
    const bool bounced = places > context_.device_segments();
    if (bounced && !bounce_receive(context_, bounces_[number], chain.places(), places)) {
      group_.release(1);
      result.status = Status::again;
      break;
    }
    free_.pop_back();
    Slot& slot = slots_[number];
    slot.context = request.context;
    slot.posted = true;
    slot.cancelled = false;
    slot.bounced = bounced;
    slot.regions = {};
    for (std::size_t i = 0; i < request.segments.size(); ++i) slot.regions[i] = request.segments[i].region;
    work.wr_id = Tag::receive | Tag::shared | Tag::of(0, number);
    work.num_sge = static_cast<int>(places);
    chain.take();
    ++posted_;
    ++result.accepted;
  }
  ring();
  if (posted_ >= low_water_) below_ = false;
  if (some_are_dry_ && posted_ != 0) [[unlikely]] {
    some_are_dry_ = false;
    for (Endpoint* endpoint : group_.members()) {
      if (endpoint->takes_from(*this)) endpoint->expect_dry(false);
    }
  }
  return result;
}

void SharedReceives::set_low_water(std::uint32_t mark) noexcept {
  const engine::Entry entry(group_.gate());
  low_water_ = mark;
  below_ = posted_ < mark;
}

SharedReceives::Taken SharedReceives::taken(std::uint32_t number, std::uint64_t length) noexcept {
  if (number >= slots_.size() || !slots_[number].posted) return {0, true};
  Slot& slot = slots_[number];
  const Taken result{slot.context, slot.cancelled};
  if (slot.bounced && !slot.cancelled) bounces_[number].scatter(length);
  slot.posted = false;
  free_.push_back(number);
  if (slot.cancelled) return result;
  --posted_;
  if (posted_ < low_water_ && !below_) {
    below_ = true;
    low_water_due_ = true;
    group_.add(*this);
  }
  return result;
}

bool SharedReceives::uses(std::uint64_t region) const noexcept {
  return std::any_of(slots_.begin(), slots_.end(), [region](const Slot& slot) {
    return slot.posted && !slot.cancelled &&
           std::find(slot.regions.begin(), slot.regions.end(), region) != slot.regions.end();
  });
}

void SharedReceives::cancel(std::uint64_t region) noexcept {
  for (Slot& slot : slots_) {
    if (!slot.posted || slot.cancelled ||
        std::find(slot.regions.begin(), slot.regions.end(), region) == slot.regions.end())
      continue;
    slot.cancelled = true;
    --posted_;
    const auto number = static_cast<std::uint32_t>(&slot - slots_.data());
    if (std::erase(waiting_, number) != 0) {  // nothing will take it
      slot.posted = false;
      free_.push_back(number);
    }
    Completion entry;
    entry.operation = Operation::receive;
    entry.status = Status::cancelled;
    entry.context = slot.context;
    entry.user_value = user_value_;
    group_.push(entry);
  }
}

void SharedReceives::enter_child() noexcept {
  static_cast<void>(shared_.release());
  static_cast<void>(bounces_.release());
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

}  // namespace weft::verbs
