// Checking what a request names: the same for sends and receives (MEM-2).
#pragma once

#include <cstdint>
#include <span>

#include "records.hpp"
#include "regions.hpp"
#include "weft/work_request.hpp"

namespace weft::engine {

// One segment against its region. A zero-length one needs none (OPS-8); a plain address is good for inline
// only.
[[nodiscard]] inline Status check_segment(const RegionTable& regions, const Segment& segment, Access needed,
                                          bool inline_data, Piece& piece) noexcept {
  if (segment.length == 0) {
    piece = {};
    return Status::ok;
  }
  if (segment.region == 0) {
    if (!inline_data || segment.offset == 0) return Status::invalid_argument;
    if (segment.length > max_inline) return Status::too_big;  // and so no sum of them can wrap
    piece = {reinterpret_cast<std::byte*>(segment.offset), segment.length, 0};
    return Status::ok;
  }
  const RegionEntry* region = regions.find(segment.region);
  if (region == nullptr || !inside(segment.offset, segment.length, region->length) ||
      !has(region->access, needed)) {
    return Status::invalid_argument;
  }
  piece = {region->address + segment.offset, segment.length, segment.region};
  return Status::ok;
}

// Checks all segments without keeping anything but the first piece and the sum of lengths.
struct CheckedSegments {
  std::uint64_t length = 0;
  Piece first;
};

[[nodiscard]] inline Status check_segments(const RegionTable& regions, std::span<const Segment> segments,
                                           Access needed, bool inline_data,
                                           CheckedSegments& checked) noexcept {
  if (segments.size() == 1) [[likely]] {
    checked.length = segments[0].length;
    return check_segment(regions, segments[0], needed, inline_data, checked.first);
  }
  if (segments.size() > max_segments) return Status::invalid_argument;
  for (const Segment& segment : segments) {
    Piece piece;
    if (const Status status = check_segment(regions, segment, needed, inline_data, piece);
        status != Status::ok) {
      return status;
    }
    checked.length += segment.length;  // regions are real memory, inline pieces are short: cannot wrap
  }
  return Status::ok;
}

// Fills the pieces of a record whose segments passed the check. False only when memory is out.
template <class Record>
[[nodiscard]] bool fill_pieces(const RegionTable& regions, SpillPool& spills,
                               std::span<const Segment> segments, Access needed, bool inline_data,
                               const Piece& first, Record& record) noexcept {
  record.spill = nullptr;
  record.piece_count = static_cast<std::uint8_t>(segments.size());
  if (segments.size() <= 1) [[likely]] {
    record.piece = first;
    return true;
  }
  record.spill = spills.take();
  if (record.spill == nullptr) return false;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    if (check_segment(regions, segments[i], needed, inline_data, record.spill->pieces[i]) != Status::ok) {
      record.spill->pieces[i] = {};
    }
  }
  return true;
}

// A receive: check, then fill.
[[nodiscard]] inline Status make_receive(const RegionTable& regions, SpillPool& spills,
                                         const ReceiveRequest& request, ReceiveRecord& record) noexcept {
  CheckedSegments checked;
  if (const Status status = check_segments(regions, request.segments, Access::local_write, false, checked);
      status != Status::ok) {
    return status;
  }
  record.context = request.context;
  record.capacity = checked.length;
  if (!fill_pieces(regions, spills, request.segments, Access::local_write, false, checked.first, record)) {
    return Status::again;
  }
  return Status::ok;
}

[[nodiscard]] inline bool uses_region(const Pieces& pieces, std::uint64_t region) noexcept {
  for (std::uint32_t i = 0; i < pieces.count; ++i) {
    if (pieces.first[i].region == region) return true;
  }
  return false;
}

}  // namespace weft::engine
