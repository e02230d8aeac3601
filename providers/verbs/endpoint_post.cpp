// Taking requests: everything is checked before anything is changed (OPS-1, MEM-2, MEM-4). The common case,
// an operation of one segment that leaves at once, becomes a work request of the group's chain in one go.
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
  record.operation = request.operation;
  record.signalled = asked;
  record.more_regions = false;
  record.region = 0;
  if (!request.segments.empty()) {
    record.region = request.segments[0].region;
    if (request.segments.size() > 1) [[unlikely]]
      name_regions(request, record);
  }
  const bool fits = length <= context_.longest_piece() && in_device() + own_requests <= device_depth_ &&
                    static_cast<std::uint32_t>(work.num_sge) <= context_.device_segments();
  if (issued_ != sends_.tail || !fits) [[unlikely]] {
    work.send_flags = flags;
    hold(request, work, places);
    return Status::ok;
  }
  record.planned = false;
  record.last_serial = ++serial_;
  credit_ -= credit_ != 0 ? 1 : 0;
  work.wr_id = Tag::of(place_.slot, serial_);
  if (signals_.next(asked)) {
    flags |= IBV_SEND_SIGNALED;
    ++chain.signals;
  }
  work.send_flags = flags;
  chain.take();
  ++sends_.tail;
  ++issued_;
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
  record.more_regions = true;
  for (std::size_t i = 1; i < request.segments.size(); ++i) names[i - 1] = request.segments[i].region;
}

void Endpoint::find_credit() noexcept {
  credit_ = 0;
  if (issued_ != sends_.tail || in_device() + own_requests > device_depth_) return;
  credit_ = std::min(sends_.depth() - static_cast<std::uint32_t>(sends_.size()),
                     device_depth_ - own_requests - in_device() + 1);
}

// The common case with few instructions: a whole operation of one segment, without fence or immediate, that
// leaves at once; there is credit. False when it needs the long way; then nothing has changed.
[[gnu::always_inline]] inline bool Endpoint::build_simple(const WorkRequest& request, ibv_send_wr& work,
                                                          ibv_sge& place) noexcept {
  const auto index = static_cast<std::size_t>(request.operation);
  const auto flags = static_cast<unsigned>(request.flags);
  if (index >= simple_limits_.size() || (flags & ~simple_flags) != 0 || request.segments.size() != 1)
      [[unlikely]]
    return false;
  const Segment& segment = request.segments.front();
  const std::uint64_t length = segment.length;
  if (length - 1 >= simple_limits_[index]) [[unlikely]]
    return false;  // an empty one too
  unsigned native = static_cast<unsigned>(IBV_SEND_INLINE);
  if (length > simple_inline_[index]) {
    if ((flags & inline_flag) != 0) [[unlikely]]
      return false;
    native = 0;
  }
  if (segment.region != 0) {
    const engine::RegionEntry* region = last_region_;
    if (region == nullptr || region->token.load(std::memory_order_acquire) != segment.region) [[unlikely]] {
      region = context_.regions().find(segment.region);
      if (region == nullptr) return false;
      last_region_ = region;
    }
    if (!engine::inside(segment.offset, length, region->length) || !has(region->access, shapes[index].local))
        [[unlikely]]
      return false;
    place = {reinterpret_cast<std::uint64_t>(region->address) + segment.offset,
             static_cast<std::uint32_t>(length), local_key(*region)};
  } else {
    if ((flags & inline_flag) == 0 || segment.offset == 0) [[unlikely]]
      return false;
    place.addr = segment.offset;
    place.length = static_cast<std::uint32_t>(length);
  }
  if (index != static_cast<std::size_t>(Operation::send)) {
    const Import* import = last_import_;
    if (import == nullptr || import->token != request.remote.memory) [[unlikely]] {
      const std::uint64_t slot = request.remote.memory & 0xffffffff;
      if (slot >= imports_.size() || imports_[slot].token != request.remote.memory) return false;
      last_import_ = import = &imports_[slot];
    }
    if (!has(import->access, shapes[index].remote) ||
        !engine::inside(request.remote.offset, length, import->length)) [[unlikely]]
      return false;
    work.wr.rdma.remote_addr = import->address + request.remote.offset;
    work.wr.rdma.rkey = import->key;
  }
  const bool asked = (flags & unsignalled_flag) == 0;
  if (asked && !send_queue_.reserve()) [[unlikely]]
    return false;
  const std::uint32_t serial = ++serial_;
  SendRecord& record = sends_.back();
  ++sends_.tail;
  --credit_;
  record.context = request.context;
  record.length = length;
  record.region = segment.region;
  record.last_serial = serial;
  record.operation = request.operation;
  record.signalled = asked;
  record.more_regions = false;
  record.planned = false;
  if (signals_.next(asked)) native |= IBV_SEND_SIGNALED;
  work.wr_id = tag_ | serial;
  work.opcode = shapes[index].opcode;
  work.send_flags = native;
  return true;
}

// Returns how many of the first requests were of that kind; the next one needs the long way, or the chain is
// full.
std::size_t Endpoint::take_simple(const WorkRequest* requests, std::size_t count) noexcept {
  if (credit_ < count) [[unlikely]]
    find_credit();
  Chain& chain = group_.chain();
  count = std::min({count, chain.room(), std::size_t{credit_}});
  std::size_t done = 0;
  for (; done < count; ++done) {
    ibv_send_wr& work = chain.next();
    if (!build_simple(requests[done], work, chain.places()[0])) break;
    work.num_sge = 1;
    chain.signals += (work.send_flags & IBV_SEND_SIGNALED) != 0 ? 1 : 0;
    chain.take();
  }
  issued_ += done;
  return done;
}

// A call of one operation needs no chain.
[[gnu::always_inline]] inline void Endpoint::post_one() noexcept {
  ++issued_;
  ibv_send_wr* bad = nullptr;
  const int code = post_chain(&one_, &bad);
  Counts& counts = group_.counts();
  counts.add(Count::single_posts);
  if ((one_.send_flags & IBV_SEND_SIGNALED) != 0) counts.add(Count::signals);
  if (code != 0) [[unlikely]]
    refused_one(code);
}

void Endpoint::refused_one(int code) noexcept {
  Counts& counts = group_.counts();
  counts.take_back(Count::signals, keep_refused(&one_, 1));
  counts.take_back(Count::work_requests, 1);
  refused(code, "a request");
}

PostResult Endpoint::refuse() const noexcept {
  return {state_ == State::preparing ? Status::again : Status::not_connected, 0};
}

PostResult Endpoint::post(const WorkRequest* requests, std::size_t count) noexcept {
  const engine::Entry entry(group_.gate());
  if (state_ != State::up) [[unlikely]]
    return refuse();
  if (count == 1 && credit_ != 0 && build_simple(*requests, one_, one_place_)) [[likely]] {
    post_one();
    if (signals_.trailing()) context_.expect_service();
    return {Status::ok, 1};
  }
  return post_any(requests, count);
}

PostResult Endpoint::post_any(const WorkRequest* requests, std::size_t count) noexcept {
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
  if (signals_.trailing() || issued_ != sends_.tail) context_.expect_service();
  return result;
}

}  // namespace weft::verbs
