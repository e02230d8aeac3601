// Taking requests: everything is checked before anything is changed (OPS-1, MEM-2, MEM-4). The common case,
// an operation of one segment that leaves at once, is checked against what the last one of its kind had
// (SendPreset), and a call of one operation hands over the preset's own work request.
#include <endian.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "context.hpp"
#include "endpoint.hpp"
#include "shared_receives.hpp"

namespace weft::verbs {

namespace {

// What an operation means to the device and to the checks, by its number.
struct Shape {
  ibv_wr_opcode opcode;
  Access local;   // needed of the local segments
  Access remote;  // needed of the imported key; none: names no remote memory
  bool outgoing;  // carries bytes, which can be inline
  bool message;   // consumes a receive of the peer
  bool atomic;
};
constexpr std::array<Shape, 7> shapes{{
    {IBV_WR_SEND, Access::none, Access::none, true, true, false},
    {IBV_WR_RDMA_WRITE, Access::none, Access::remote_write, true, false, false},
    {IBV_WR_RDMA_WRITE_WITH_IMM, Access::none, Access::remote_write, true, true, false},
    {IBV_WR_RDMA_READ, Access::local_write, Access::remote_read, false, false, false},
    {IBV_WR_ATOMIC_FETCH_AND_ADD, Access::local_write, Access::remote_atomic, false, false, true},
    {IBV_WR_ATOMIC_CMP_AND_SWP, Access::local_write, Access::remote_atomic, false, false, true},
    {IBV_WR_RDMA_READ, Access::none, Access::none, false, false, false},  // flush
}};
static_assert(static_cast<std::size_t>(Operation::flush) + 1 == shapes.size());

constexpr auto unsignalled_flag = static_cast<unsigned>(Flags::unsignalled);
constexpr auto inline_flag = static_cast<unsigned>(Flags::inline_data);
constexpr unsigned simple_flags = unsignalled_flag | inline_flag;
constexpr std::uint64_t endless = UINT64_MAX - 1;  // bytes from address 1 on
constexpr auto known_flags = Flags::unsignalled | Flags::inline_data | Flags::fence | Flags::with_immediate;

// A length as the device takes it. No message is longer than what a place of this size can hold.
std::uint32_t place_length(std::uint64_t length) noexcept {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(length, longest_place));
}

std::uint32_t local_key(const engine::RegionEntry& region) noexcept {
  return static_cast<std::uint32_t>(region.native);
}

}  // namespace

Status Endpoint::place(const WorkRequest& request, Access needed, bool inline_data, ibv_sge* places,
                       std::uint64_t& length, std::uint32_t& count) const noexcept {
  if (request.segments.size() > limits_.max_segments) return Status::invalid_argument;
  const engine::RegionTable& regions = context_.regions();
  for (const Segment& segment : request.segments) {
    if (segment.length == 0) continue;  // needs no region (OPS-8)
    if (segment.region == 0) {
      if (!inline_data || segment.offset == 0) return Status::invalid_argument;
      if (segment.length > limits_.max_inline) return Status::too_big;  // so no sum of them can wrap
      places[count++] = {segment.offset, static_cast<std::uint32_t>(segment.length), 0};
    } else {
      const engine::RegionEntry* region = regions.find(segment.region);
      if (region == nullptr || !engine::inside(segment.offset, segment.length, region->length) ||
          !has(region->access, needed))
        return Status::invalid_argument;
      places[count++] = {reinterpret_cast<std::uint64_t>(region->address) + segment.offset,
                         place_length(segment.length), local_key(*region)};
    }
    length += segment.length;
  }
  return Status::ok;
}

Status Endpoint::find_remote(const WorkRequest& request, Access needed, std::uint64_t length, bool atomic,
                             Remote& remote) const noexcept {
  const std::uint64_t index = request.remote.memory & 0xffffffff;
  if (index >= imports_.size()) return Status::invalid_argument;
  const Import& import = imports_[index];
  if (import.token != request.remote.memory || import.token == 0 || !has(import.access, needed) ||
      !engine::inside(request.remote.offset, length, import.length))
    return Status::invalid_argument;
  remote = {import.address + request.remote.offset, import.key};
  return atomic && remote.address % sizeof(std::uint64_t) != 0 ? Status::invalid_argument : Status::ok;
}

Status Endpoint::take(const WorkRequest& request) noexcept {
  const auto index = static_cast<std::size_t>(request.operation);
  if (index >= shapes.size()) [[unlikely]]
    return Status::unsupported;
  if ((request.flags & known_flags) != request.flags) [[unlikely]]
    return Status::invalid_argument;
  const Shape& shape = shapes[index];
  const bool inline_data = has(request.flags, Flags::inline_data);
  if (inline_data && !shape.outgoing) [[unlikely]]
    return Status::invalid_argument;

  Chain& chain = group_.chain();
  if (chain.full()) ring();
  ibv_send_wr& work = chain.next();
  ibv_sge* const places = chain.places();
  std::uint64_t length = 0;
  std::uint32_t count = 0;
  Remote remote;
  if (request.operation == Operation::flush) [[unlikely]] {
    if (!request.segments.empty()) return Status::invalid_argument;
    places[0] = {context_.fabric().landing_address(), sizeof(std::uint64_t), context_.fabric().landing_key()};
    count = 1;
    remote = {peer_.flush_address, peer_.flush_key};
  } else {
    if (const Status status = place(request, shape.local, inline_data, places, length, count);
        status != Status::ok) [[unlikely]]
      return status;
    if (inline_data && length > limits_.max_inline) [[unlikely]]
      return Status::too_big;
    if (length > (shape.message ? limits_.max_message : limits_.max_transfer)) [[unlikely]]
      return Status::too_big;
    if (shape.atomic && length != sizeof(std::uint64_t)) [[unlikely]]
      return Status::invalid_argument;
    if (shape.remote != Access::none && length != 0) {  // of zero length needs no region (OPS-8)
      if (const Status status = find_remote(request, shape.remote, length, shape.atomic, remote);
          status != Status::ok) [[unlikely]]
        return status;
    }
  }

  if (count > context_.device_segments() && shape.atomic) [[unlikely]]
    return Status::unsupported;  // its result cannot be placed in pieces here
  if (sends_.full()) [[unlikely]] {
    ring();  // what was taken in this call may have to leave before it can come back
    group_.drive_all();
    if (sends_.full()) return Status::again;
    return take(request);
  }
  const bool asked = !has(request.flags, Flags::unsignalled);
  const bool leaves_inline = shape.outgoing && length <= device_inline_;
  // Plain writes and reads are split instead; inline bytes of the program's are copied anyway.
  if (shape.message && !inline_data && count > context_.device_segments()) [[unlikely]] {
    if (bounce_position_ != none && bounce_position_ >= sends_.head) {
      ring();
      group_.drive_all();
      if (bounce_position_ >= sends_.head) return Status::again;
      return take(request);
    }
    if (!gather(places, count, length)) return Status::again;
  }
  if (asked && !send_queue_.reserve()) [[unlikely]]
    return Status::again;

  work.opcode = shape.opcode;
  work.imm_data = htobe32(request.immediate);
  if (request.operation == Operation::send && has(request.flags, Flags::with_immediate))
    work.opcode = IBV_WR_SEND_WITH_IMM;
  work.num_sge = static_cast<int>(count);
  unsigned flags = has(request.flags, Flags::fence) ? static_cast<unsigned>(IBV_SEND_FENCE) : 0U;
  if (!shape.atomic) {
    work.wr.rdma.remote_addr = remote.address;
    work.wr.rdma.rkey = remote.key;
  } else {
    work.wr.atomic.remote_addr = remote.address;
    work.wr.atomic.rkey = remote.key;
    const bool add = request.operation == Operation::fetch_add;
    work.wr.atomic.compare_add = add ? request.operand : request.compare;
    work.wr.atomic.swap = request.operand;
  }
  if (leaves_inline) {
    if (length != 0) flags |= IBV_SEND_INLINE;
  } else if (inline_data) {
    // The device has too little inline of its own: the bytes wait in registered memory of ours.
    std::byte* const copy = inline_place(sends_.tail);
    std::size_t filled = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      std::memcpy(copy + filled, reinterpret_cast<const void*>(places[i].addr), places[i].length);
      filled += places[i].length;
    }
    places[0] = {reinterpret_cast<std::uint64_t>(copy), static_cast<std::uint32_t>(filled),
                 inline_region_->lkey};
    work.num_sge = filled == 0 ? 0 : 1;
  }

  SendRecord& record = sends_.back();
  record.context = request.context;
  record.length = length;
  record.kind = {request.operation, asked, shape.message, false, false};
  record.region = 0;
  if (!request.segments.empty()) {
    record.region = request.segments[0].region;
    if (request.segments.size() > 1) [[unlikely]]
      name_regions(request, record);
  }
  const bool fits = length <= context_.longest_piece() && in_device() + own_requests <= device_depth_ &&
                    static_cast<std::uint32_t>(work.num_sge) <= context_.device_segments();
  if (held_ != 0 || !fits) [[unlikely]] {
    work.send_flags = flags;
    hold(request, work, places);
    return Status::ok;
  }
  record.last_serial = ++serial_;
  work.wr_id = tag_ | serial_;
  if (signals_.next(asked)) {
    flags |= IBV_SEND_SIGNALED;
    ++chain.signals;
  }
  work.send_flags = flags;
  chain.take();
  ++sends_.tail;
  return Status::ok;
}

// A message goes out whole: its pieces are brought together where the device takes fewer of them.
bool Endpoint::gather(ibv_sge* places, std::uint32_t& count, std::uint64_t length) noexcept {
  if (!bounce_.reserve(context_.fabric(), length)) return false;
  bounce_.gather(places, count);
  places[0] = bounce_.place(length);
  count = 1;
  bounce_position_ = sends_.tail;
  return true;
}

void Endpoint::name_regions(const WorkRequest& request, SendRecord& record) noexcept {
  RegionNames& names = send_regions_[sends_.tail & inline_mask_];
  names = {};
  record.kind.more_regions = true;
  for (std::size_t i = 1; i < request.segments.size(); ++i) names[i - 1] = request.segments[i].region;
}

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
    return post_receives_as<kind>(requests, count);
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
