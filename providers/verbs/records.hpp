// What is kept of each outstanding operation. Completions are filled from here, since an entry that reports
// an error tells little more than its tag (CMP-5).
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "chain.hpp"
#include "common/records.hpp"
#include "weft/work_request.hpp"

namespace weft::verbs {

template <class Record>
using Ring = engine::Ring<Record>;

// What operations of one kind have in common; four bytes, copied as one.
struct RecordKind {
  Operation operation;
  bool signalled;
  bool message;           // consumes a receive of the peer
  bool more_regions : 1;  // see RegionNames
  bool planned : 1;       // see Plan; else it was one work request
};
static_assert(sizeof(RecordKind) == sizeof(std::uint32_t));

struct SendRecord {
  std::uint64_t context;
  std::uint64_t length;
  std::uint64_t region;       // token of the first segment; 0: none
  std::uint32_t last_serial;  // of its last work request, once all are handed over
  RecordKind kind;
};
static_assert(sizeof(SendRecord) == 32, "found by a shift");

struct ReceiveRecord {
  std::uint64_t context;
  std::uint64_t region;
  bool more_regions;
  bool bounced;  // arrives in memory of ours
};

// Tokens of the second and further segments, beside the records, which thus stay small.
using RegionNames = std::array<std::uint64_t, segments_per_request - 1>;

// What is left to do of an operation that did not leave at once: it is longer than one message of the device,
// or found the device's queue full.
struct Plan {
  struct Part {
    std::uint64_t address;
    std::uint64_t length;
    std::uint32_t key;
  };
  std::array<Part, segments_per_request> parts;
  std::uint64_t remote_address;
  std::uint64_t moved;  // bytes already handed over
  std::uint64_t operand;
  std::uint64_t compare;
  std::uint32_t remote_key;
  std::uint32_t part_count;
  std::uint32_t requests;  // work requests it took so far
  std::uint32_t immediate;
  unsigned flags;  // IBV_SEND_INLINE, IBV_SEND_FENCE
  ibv_wr_opcode opcode;
  bool asked;  // for an entry of its own
};

// A receive that the device did not take when it was posted.
struct ReceivePlan {
  std::array<ibv_sge, segments_per_request> places;
  int count;

  void keep(const ibv_recv_wr& work) noexcept {
    count = work.num_sge;
    for (int i = 0; i < count; ++i) places[static_cast<std::size_t>(i)] = work.sg_list[i];
  }
  void show(ibv_recv_wr& work) noexcept {
    work.num_sge = count;
    work.sg_list = places.data();
  }
};

}  // namespace weft::verbs
