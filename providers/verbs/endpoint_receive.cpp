// Handing receives to the device.
#include <algorithm>
#include <bit>
#include <cerrno>

#include "context.hpp"
#include "endpoint.hpp"
#include "shared_receives.hpp"

namespace weft::verbs {

// How many receives can be handed over now, with nothing else to be looked at.
std::uint32_t Endpoint::free_receive_places() const noexcept {
  if (shared_ != nullptr || state_ > State::broken || receives_issued_ != receives_.tail || dry_ ||
      group_.is_shared())
    return 0;
  return receives_.depth() - static_cast<std::uint32_t>(receives_.size());
}

// Makes the preset one for receives like this: of one segment, not empty.
bool Endpoint::choose_receive_preset(const ReceiveRequest& request) noexcept {
  ReceivePreset& preset = receive_preset_;
  preset.forget();
  if (request.segments.size() != 1) return false;
  const Segment& segment = request.segments.front();
  const engine::RegionEntry* region = context_.regions().find(segment.region);
  if (region == nullptr || !has(region->access, Access::local_write)) return false;
  preset.region = segment.region;
  preset.base = reinterpret_cast<std::uint64_t>(region->address);
  preset.size = region->length;
  preset.longest = std::min<std::uint64_t>(region->length, longest_place);
  preset.place.lkey = static_cast<std::uint32_t>(region->native);
  return preset.suits(request);
}

// It was accepted: it waits, and the helper tries it again.
void Endpoint::refused_one_receive(int code) noexcept {
  keep_receive(--receives_issued_, receive_preset_.work);
  receive_credit_ = 0;
  group_.counts().take_back(Count::receives, 1);
  refused(code, "a receive");
}

PostResult Endpoint::post_receives_slowly(const ReceiveRequest* requests, std::size_t count) noexcept {
  const engine::Entry entry(group_.gate());
  if (shared_ != nullptr) return {Status::unsupported, 0};
  if (state_ > State::broken) return {Status::not_connected, 0};
  PostResult result;
  ReceiveChain& chain = group_.receive_chain();
  const std::uint64_t mask = std::bit_ceil(std::uint64_t{receives_.depth()}) - 1;
  if (receives_issued_ != receives_.tail) [[unlikely]]
    push_receives();
  while (result.accepted < count) {
    const ReceiveRequest& request = requests[result.accepted];
    if (chain.full()) ring_receives();
    ibv_recv_wr& work = chain.next();
    work.wr_id = Tag::receive | tag_;
    ReceiveRecord& record = receives_.back();
    if ((receive_preset_.suits(request) || choose_receive_preset(request)) && !receives_.full() &&
        group_.reserve()) [[likely]] {
      const Segment& segment = request.segments.front();
      *chain.places() = {receive_preset_.base + segment.offset, static_cast<std::uint32_t>(segment.length),
                         receive_preset_.place.lkey};
      work.num_sge = 1;
      record = {request.context, segment.region, false, false};
      chain.take();
      ++receives_.tail;
      ++result.accepted;
      continue;
    }
    std::uint32_t places = 0;
    result.status = place_receive(context_, request, limits_.max_segments, chain.places(), places);
    if (result.status != Status::ok) break;
    if (receives_.full() || !group_.reserve()) {
      result.status = Status::again;
      break;
    }
    record.bounced = places > context_.device_segments();
    if (record.bounced) {
      Bounce& bounce = receive_bounces_[receives_.tail & mask];
      if (!bounce_receive(context_, bounce, chain.places(), places)) {
        group_.release(1);
        result.status = Status::again;
        break;
      }
    }
    record.context = request.context;
    record.region = request.segments.empty() ? 0 : request.segments[0].region;
    record.more_regions = request.segments.size() > 1;
    if (record.more_regions) {
      RegionNames& names = receive_regions_[receives_.tail & mask];
      names = {};
      for (std::size_t i = 1; i < request.segments.size(); ++i) names[i - 1] = request.segments[i].region;
    }
    work.num_sge = static_cast<int>(places);
    chain.take();
    ++receives_.tail;
    ++result.accepted;
  }
  ring_receives();
  if (dry_ && result.accepted != 0) [[unlikely]]
    expect_dry(false);
  receive_credit_ = free_receive_places();
  return result;
}

// The receives of the chain are the last ones taken. Those that the device does not take now wait, and all
// that come behind them.
void Endpoint::ring_receives() noexcept {
  ReceiveChain& chain = group_.receive_chain();
  if (chain.empty()) return;
  const std::size_t count = chain.count();
  std::size_t taken = 0;
  if (receives_issued_ + count == receives_.tail) [[likely]] {
    int code = 0;
    taken = chain.hand_over(
        [this](ibv_recv_wr* first, ibv_recv_wr** bad) { return ibv_post_recv(pair_.get(), first, bad); },
        code);
    group_.counts().add(Count::receive_doorbells);
    group_.counts().add(Count::receives, taken);
    receives_issued_ += taken;
    if (code == 0) return;
    refused(code, "a receive");
  } else {
    chain.clear();
  }
  for (std::size_t i = taken; i < count; ++i) keep_receive(receives_.tail - (count - i), chain.at(i));
}

void Endpoint::keep_receive(std::uint64_t position, const ibv_recv_wr& work) noexcept {
  const std::uint64_t mask = std::bit_ceil(std::uint64_t{receives_.depth()}) - 1;
  receive_plans_[position & mask].keep(work);
}

void Endpoint::push_receives() noexcept {
  if (state_ > State::closing) return;
  const std::uint64_t mask = std::bit_ceil(std::uint64_t{receives_.depth()}) - 1;
  while (receives_issued_ != receives_.tail) {
    ibv_recv_wr work{};
    ibv_recv_wr* bad = nullptr;
    work.wr_id = Tag::receive | Tag::of(place_.slot, 0);
    receive_plans_[receives_issued_ & mask].show(work);
    group_.counts().add(Count::receive_doorbells);
    if (const int code = ibv_post_recv(pair_.get(), &work, &bad); code != 0) {
      refused(code, "a receive");
      return;
    }
    group_.counts().add(Count::receives);
    ++receives_issued_;
  }
}

}  // namespace weft::verbs
