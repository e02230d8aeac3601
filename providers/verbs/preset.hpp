// What operations of one kind had in common the last time, checked then and filled into a work request: most
// programs post the same kind from the same region again and again. The next one of that kind needs only its
// own lengths and places checked.
#pragma once

#include <infiniband/verbs.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "records.hpp"
#include "weft/work_request.hpp"

namespace weft::verbs {

// Operation and flags of a request, compared as one number.
[[nodiscard]] inline std::uint16_t kind_word(const WorkRequest& request) noexcept {
  static_assert(offsetof(WorkRequest, operation) == 0 && offsetof(WorkRequest, flags) == 1);
  std::uint16_t word = 0;
  std::memcpy(&word, &request, sizeof word);
  return word;
}

struct alignas(64) SendPreset {
  // ---- what a request of this kind says
  std::uint64_t region = 0;
  std::uint64_t first = 0;     // the lowest offset: 1 for plain addresses, which are not null
  std::uint64_t base = 0;      // the address of that offset
  std::uint64_t size = 0;      // bytes from there on
  std::uint64_t shortest = 1;  // of the lengths that leave in the same way, inline or not
  std::uint64_t lengths = 0;   // how many of them there are; 0: a preset for nothing
  std::uint64_t memory = 0;    // of the peer; 0: none
  std::uint64_t remote_base = 0;
  std::uint64_t remote_size = 0;
  std::uint16_t word = 0;
  RecordKind kind{};
  // ---- what comes of it
  ibv_sge place{};
  ibv_send_wr work{};

  SendPreset() noexcept {
    work.sg_list = &place;
    work.num_sge = 1;
  }
  SendPreset(const SendPreset&) = delete;
  SendPreset& operator=(const SendPreset&) = delete;

  // The request is one of this kind, and lies in memory that it may use: all but its room is checked.
  [[nodiscard, gnu::always_inline]] bool suits(const WorkRequest& request) const noexcept {
    if (kind_word(request) != word || request.segments.size() != 1) [[unlikely]]
      return false;
    const Segment& segment = request.segments.front();
    if (segment.length - shortest >= lengths || segment.region != region ||
        segment.offset - first > size - segment.length) [[unlikely]]
      return false;
    return memory == 0 ||
           (request.remote.memory == memory && request.remote.offset <= remote_size - segment.length);
  }
  void forget() noexcept { lengths = 0; }
};

// The same for receives of one segment.
struct alignas(64) ReceivePreset {
  std::uint64_t region = 0;
  std::uint64_t base = 0;
  std::uint64_t size = 0;
  std::uint64_t longest = 0;  // 0: a preset for nothing
  ibv_sge place{};
  ibv_recv_wr work{};

  ReceivePreset() noexcept {
    work.sg_list = &place;
    work.num_sge = 1;
  }
  ReceivePreset(const ReceivePreset&) = delete;
  ReceivePreset& operator=(const ReceivePreset&) = delete;

  [[nodiscard, gnu::always_inline]] bool suits(const ReceiveRequest& request) const noexcept {
    if (request.segments.size() != 1) [[unlikely]]
      return false;
    const Segment& segment = request.segments.front();
    return segment.region == region && segment.length - 1 < longest &&
           segment.offset <= size - segment.length;
  }
  void forget() noexcept { longest = 0; }
};

}  // namespace weft::verbs
