// Posting. The common case, an operation of one segment that leaves at once, is checked against what the last
// one of its kind had (SendPreset), and a call of one operation hands over the preset's own work request. All
// others are taken one by one, see endpoint_take.cpp.
#include <algorithm>

#include "context.hpp"
#include "endpoint.hpp"
#include "shape.hpp"

namespace weft::verbs {

namespace {

constexpr auto unsignalled_flag = static_cast<unsigned>(Flags::unsignalled);
constexpr auto inline_flag = static_cast<unsigned>(Flags::inline_data);
constexpr unsigned simple_flags = unsignalled_flag | inline_flag;
constexpr std::uint64_t endless = UINT64_MAX - 1;  // bytes from address 1 on

}  // namespace

// How many operations can be handed over now.
std::uint32_t Endpoint::free_places() const noexcept {
  if (state_ != State::up || held_ != 0 || in_device() + own_requests > device_depth_) return 0;
  return std::min(sends_.depth() - static_cast<std::uint32_t>(sends_.size()),
                  device_depth_ - own_requests - in_device() + 1);
}

// Makes preset_ one for requests like this: a whole operation of one segment, without fence or immediate.
// False when it needs the long way, be it for a fault in it.
bool Endpoint::choose_preset(const WorkRequest& request) noexcept {
  const auto index = static_cast<std::size_t>(request.operation);
  const auto flags = static_cast<unsigned>(request.flags);
  if (index >= simple_limits_.size() || (flags & ~simple_flags) != 0 || request.segments.size() != 1)
    return false;
  const Segment& segment = request.segments.front();
  const Shape& shape = shapes[index];
  const bool asked = (flags & unsignalled_flag) == 0;
  SendPreset& preset = presets_[index * 2 + (asked ? 1 : 0)];
  preset.word = kind_word(request);
  preset.kind = {request.operation, asked, shape.message, false, false};
  preset.forget();
  std::uint64_t longest = simple_limits_[index];
  unsigned native = asked ? static_cast<unsigned>(IBV_SEND_SIGNALED) : 0U;
  preset.shortest = 1;
  const std::uint64_t most_inline = shape.outgoing ? device_inline_ : 0;
  if ((flags & inline_flag) != 0 || segment.length <= most_inline) {
    longest = std::min(longest, most_inline);
    native |= static_cast<unsigned>(IBV_SEND_INLINE);
  } else {
    preset.shortest = most_inline + 1;
  }
  if (segment.region == 0) {
    if ((flags & inline_flag) == 0) return false;
    preset.first = preset.base = 1;
    preset.size = endless;
  } else {
    const engine::RegionEntry* region = context_.regions().find(segment.region);
    if (region == nullptr || !has(region->access, shape.local)) return false;
    preset.first = 0;
    preset.base = reinterpret_cast<std::uint64_t>(region->address);
    preset.size = region->length;
    preset.place.lkey = local_key(*region);
  }
  preset.region = segment.region;
  longest = std::min(longest, preset.size);
  preset.memory = 0;
  if (shape.remote != Access::none) {
    const std::uint64_t slot = request.remote.memory & 0xffffffff;
    if (slot >= imports_.size() || imports_[slot].token != request.remote.memory ||
        request.remote.memory == 0 || !has(imports_[slot].access, shape.remote))
      return false;
    const Import& import = imports_[slot];
    preset.memory = import.token;
    preset.remote_base = import.address;
    preset.remote_size = import.length;
    preset.work.wr.rdma.rkey = import.key;
    longest = std::min(longest, preset.remote_size);
  }
  preset.work.wr_id = tag_;
  preset.work.opcode = shape.opcode;
  preset.work.send_flags = native;
  preset.lengths = longest < preset.shortest ? 0 : longest - preset.shortest + 1;
  preset_ = &preset;
  return preset.suits(request);
}

void Endpoint::forget_region(std::uint64_t token) noexcept {
  for (SendPreset& preset : presets_) {
    if (preset.region == token) preset.forget();
  }
  if (receive_preset_.region == token) receive_preset_.forget();
}

void Endpoint::forget_key(std::uint64_t token) noexcept {
  for (SendPreset& preset : presets_) {
    if (preset.memory == token) preset.forget();
  }
}

// Returns how many of the first requests were of the common kind; the next one needs the long way, or the
// chain is full.
std::size_t Endpoint::take_simple(const WorkRequest* requests, std::size_t count) noexcept {
  Chain& chain = group_.chain();
  count = std::min({count, chain.room(), std::size_t{free_places()}});
  const std::size_t before = chain.count();
  const std::uint64_t tag = tag_;
  std::uint64_t tail = sends_.tail;
  std::uint32_t serial = serial_;
  std::uint32_t quiet = signals_.quiet();
  std::uint32_t signals = 0;
  std::uint32_t reserved = 0;  // in the queue of completions, and not used yet
  std::size_t done = 0;
  const SendPreset* preset = preset_;
  for (; done < count; ++done) {
    const WorkRequest& request = requests[done];
    if (!preset->suits(request)) [[unlikely]] {
      if (!choose_preset(request)) break;
      preset = preset_;
    }
    const bool asked = preset->kind.signalled;
    if (asked) {
      if (reserved == 0) [[unlikely]] {
        reserved = send_queue_.reserve_up_to(static_cast<std::uint32_t>(count - done));
        if (reserved == 0) break;
      }
      --reserved;
    }
    const Segment& segment = request.segments.front();
    const std::uint64_t length = segment.length;
    const std::uint64_t region = segment.region;
    const std::uint64_t address = segment.offset - preset->first + preset->base;
    unsigned flags = preset->work.send_flags;
    if (asked || quiet == 0) {
      flags |= static_cast<unsigned>(IBV_SEND_SIGNALED);
      quiet = signals_.every() - 1;
      ++signals;
    } else {
      --quiet;
    }
    SendRecord& record = sends_[tail++];
    record.context = request.context;
    record.length = length;
    record.region = region;
    record.last_serial = ++serial;
    record.kind = preset->kind;
    ibv_send_wr& work = chain.at(before + done);
    work.wr_id = tag | serial;
    work.num_sge = 1;
    work.opcode = preset->work.opcode;
    work.send_flags = flags;
    work.wr.rdma.remote_addr = preset->remote_base + request.remote.offset;  // of no meaning for a send
    work.wr.rdma.rkey = preset->work.wr.rdma.rkey;
    *work.sg_list = {address, static_cast<std::uint32_t>(length), preset->place.lkey};
  }
  if (reserved != 0) [[unlikely]]
    send_queue_.release(reserved);
  sends_.tail = tail;
  serial_ = serial;
  signals_.set_quiet(quiet);
  chain.signals += signals;
  chain.take(done);
  return done;
}

void Endpoint::refused_one(int code) noexcept {
  signalled_posts_ -= keep_refused(&preset_->work, 1);
  group_.counts().take_back(Count::work_requests, 1);
  refused(code, "a request");
}

PostResult Endpoint::refuse() const noexcept {
  return {state_ == State::preparing ? Status::again : Status::not_connected, 0};
}

PostResult Endpoint::post_slowly(const WorkRequest* requests, std::size_t count) noexcept {
  const engine::Entry entry(group_.gate());
  return post_any(requests, count);
}

// Inside the gate already.
template <engine::Gate::Kind kind>
PostResult Endpoint::post_inside(const WorkRequest& request) noexcept {
  const PostResult result = post_any(&request, 1);
  gate_.leave_as<kind>();
  return result;
}

PostResult Endpoint::post_any(const WorkRequest* requests, std::size_t count) noexcept {
  if (state_ != State::up) return refuse();
  PostResult result;
  Chain& chain = group_.chain();
  while (true) {
    result.accepted += take_simple(requests + result.accepted, count - result.accepted);
    if (result.accepted == count) break;
    if (chain.full()) {
      ring();
      if (state_ == State::up) continue;
      result.status = refuse().status;
      break;
    }
    result.status = take(requests[result.accepted]);
    if (result.status != Status::ok) break;
    ++result.accepted;
  }
  if (!chain.empty()) ring();
  if (signals_.trailing() || held_ != 0) context_.expect_service();
  credit_ = send_queue_.is_shared() ? 0 : std::min(free_places(), signals_.quiet());
  return result;
}

// Posting for one kind of gate: single, or safe. The rare ways out of post are jumps into functions of their
// own, so that the common way saves no registers.
template <engine::Gate::Kind kind>
class EndpointAs final : public Endpoint {
 public:
  EndpointAs(Context& context, Queue& group, const provider::EndpointRequest& request)
      : Endpoint(context, group, request) {}
  PostResult post(const WorkRequest* requests, std::size_t count) noexcept override {
    if (count != 1 || !gate_.enter_at_once<kind>()) [[unlikely]]
      return post_slowly(requests, count);
    const WorkRequest& request = *requests;
    SendPreset& preset = *preset_;
    if (credit_ == 0 || !preset.suits(request)) [[unlikely]]
      return post_inside<kind>(request);
    // All is read before anything is written: the compiler cannot know that the one is not the other.
    const Segment& segment = request.segments.front();
    const std::uint64_t context = request.context;
    const std::uint64_t length = segment.length;
    const std::uint64_t region = segment.region;
    const std::uint64_t address = segment.offset - preset.first + preset.base;
    const std::uint64_t remote = preset.remote_base + request.remote.offset;  // of no meaning for a send
    if (preset.kind.signalled) {
      if (!send_queue_.reserve_unshared()) [[unlikely]]
        return post_inside<kind>(request);
      signals_.note_signal();
      ++signalled_posts_;
    } else {
      if (!context_.service_is_near()) [[unlikely]]
        return post_inside<kind>(request);
      signals_.note_quiet();
      ++quiet_posts_;
    }
    --credit_;
    const std::uint32_t serial = ++serial_;
    SendRecord& record = sends_.back();
    ++sends_.tail;
    record.context = context;
    record.length = length;
    record.region = region;
    record.last_serial = serial;
    record.kind = preset.kind;
    preset.place.addr = address;
    preset.place.length = static_cast<std::uint32_t>(length);
    preset.work.wr.rdma.remote_addr = remote;
    Tag::renumber(preset.work.wr_id, serial);
    if (const int code = post_chain(&preset.work, &not_taken_); code != 0) [[unlikely]]
      refused_one(code);
    gate_.leave_as<kind>();
    return {Status::ok, 1};
  }
  PostResult post_receives(const ReceiveRequest* requests, std::size_t count) noexcept override {
    if (count != 1 || !gate_.enter_at_once<kind>()) [[unlikely]]
      return post_receives_slowly(requests, count);
    ReceivePreset& preset = receive_preset_;
    if (receive_credit_ == 0 || !preset.suits(*requests) || !group_.reserve_unshared()) [[unlikely]] {
      gate_.leave_as<kind>();
      return post_receives_slowly(requests, 1);
    }
    const Segment& segment = requests->segments.front();
    const std::uint64_t context = requests->context;
    const std::uint64_t region = segment.region;
    const std::uint64_t address = preset.base + segment.offset;
    const auto length = static_cast<std::uint32_t>(segment.length);
    --receive_credit_;
    preset.place.addr = address;
    preset.place.length = length;
    ReceiveRecord& record = receives_.back();
    ++receives_.tail;
    ++receives_issued_;
    record = {context, region, false, false};
    group_.counts().add(Count::single_receives);
    if (const int code = ibv_post_recv(pair_.get(), &preset.work, &receive_not_taken_); code != 0)
        [[unlikely]]
      refused_one_receive(code);
    gate_.leave_as<kind>();
    return {Status::ok, 1};
  }
};

std::unique_ptr<Endpoint> Endpoint::make(Context& context, Queue& group,
                                         const provider::EndpointRequest& request) {
  using Kind = engine::Gate::Kind;
  switch (group.gate().kind()) {
    case Kind::announced:
      return std::make_unique<EndpointAs<Kind::announced>>(context, group, request);
    case Kind::locked:
      return std::make_unique<EndpointAs<Kind::locked>>(context, group, request);
    case Kind::fenced:
      break;
  }
  return std::make_unique<EndpointAs<Kind::fenced>>(context, group, request);
}

}  // namespace weft::verbs
