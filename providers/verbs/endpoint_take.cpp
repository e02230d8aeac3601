// Taking requests one by one: everything is checked before anything is changed (OPS-1, MEM-2, MEM-4).
#include <endian.h>

#include <algorithm>
#include <cstring>

#include "context.hpp"
#include "endpoint.hpp"
#include "shape.hpp"

namespace weft::verbs {

namespace {

constexpr auto known_flags = Flags::unsignalled | Flags::inline_data | Flags::fence | Flags::with_immediate;

// A length as the device takes it. No message is longer than what a place of this size can hold.
std::uint32_t place_length(std::uint64_t length) noexcept {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(length, longest_place));
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

}  // namespace weft::verbs
