// Handing receives to the device.
#include <bit>
#include <cerrno>

#include "context.hpp"
#include "endpoint.hpp"
#include "shared_receives.hpp"

namespace weft::verbs {

PostResult Endpoint::post_receives(const ReceiveRequest* requests, std::size_t count) noexcept {
  const engine::Entry entry(group_.gate());
  if (shared_ != nullptr) return {Status::unsupported, 0};
  if (state_ > State::broken) [[unlikely]]
    return {Status::not_connected, 0};
  PostResult result;
  ReceiveChain& chain = group_.receive_chain();
  const std::uint64_t mask = std::bit_ceil(std::uint64_t{receives_.depth()}) - 1;
  if (receives_issued_ != receives_.tail) [[unlikely]]
    push_receives();
  while (result.accepted < count) {
    const ReceiveRequest& request = requests[result.accepted];
    if (chain.full()) ring_receives();
    ibv_recv_wr& work = chain.next();
    std::uint32_t places = 0;
    result.status = place_receive(context_, request, limits_.max_segments, chain.places(), places);
    if (result.status != Status::ok) [[unlikely]]
      break;
    if (receives_.full() || !group_.reserve()) [[unlikely]] {
      result.status = Status::again;
      break;
    }
    ReceiveRecord& record = receives_.back();
    record.bounced = places > context_.device_segments();
    if (record.bounced) [[unlikely]] {
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
    if (record.more_regions) [[unlikely]] {
      RegionNames& names = receive_regions_[receives_.tail & mask];
      names = {};
      for (std::size_t i = 1; i < request.segments.size(); ++i) names[i - 1] = request.segments[i].region;
    }
    work.wr_id = Tag::receive | Tag::of(place_.slot, 0);
    work.num_sge = static_cast<int>(places);
    chain.take();
    ++receives_.tail;
    ++result.accepted;
  }
  ring_receives();
  if (dry_ && result.accepted != 0) [[unlikely]]
    expect_dry(false);
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
  const std::uint64_t mask = std::bit_ceil(std::uint64_t{receives_.depth()}) - 1;
  for (std::size_t i = taken; i < count; ++i)
    receive_plans_[(receives_.tail - (count - i)) & mask].keep(chain.at(i));
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
