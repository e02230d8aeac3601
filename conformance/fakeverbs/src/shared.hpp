// What lies in memory that several processes see. Each process has one segment: its queue pairs, its regions
// and an arena with its receive and completion queues. Only offsets are kept, never pointers; only atomics
// are written by more than one process.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "owner_lock.hpp"

namespace fakeverbs {

constexpr std::uint32_t max_processes = 128;  // 7 bits of a queue pair number
constexpr std::uint32_t max_queue_pairs = 4096;
constexpr std::uint32_t queue_pair_sequence_bits = 17;
constexpr std::uint32_t max_regions = 1u << 16;
constexpr std::size_t arena_bytes = std::size_t{4} << 30;  // sparse: only what is touched costs memory
constexpr std::uint32_t layout_version = 1;

// A ring of receives. The owner adds at `tail`; whoever carries a message in takes at `head`, by compare and
// exchange.
struct SharedReceiveQueue {
  std::atomic<std::uint64_t> head;
  std::atomic<std::uint64_t> tail;
  std::uint64_t entries;   // offset in the segment
  std::uint32_t capacity;  // entries
  std::uint32_t stride;    // bytes per entry
  std::atomic<std::uint32_t>
      limit;  // shared receive queues: raise the event when fewer than this are left; 0 is off
  std::atomic<std::uint32_t> waited;         // a sender found it empty: wake the senders at the next post
  std::atomic<std::uint32_t> limit_reached;  // for the owner to raise the event
  std::uint32_t padding;
};

struct SharedReceive {
  std::uint64_t wr_id;
  std::uint32_t count;
  std::uint32_t padding;
  // ibv_sge follow
};

// One completion. `stamp` is (position << 16 | owner): 0 free, a process slot + 1 while it is being written,
// `stamp_published` once it can be read.
struct alignas(64) SharedCompletion {
  std::atomic<std::uint64_t> stamp;
  std::uint64_t wr_id;
  std::uint64_t send_position;  // of the request in its send queue: reading it frees the queue up to here
  std::uint32_t qp_num;
  std::uint32_t status;
  std::uint32_t opcode;
  std::uint32_t byte_len;
  std::uint32_t imm_data;
  std::uint32_t wc_flags;
  std::uint32_t src_qp;
  std::uint32_t solicited;
};

constexpr std::uint64_t stamp_published = 0xffff;

struct SharedCompletionQueue {
  std::atomic<std::uint64_t> tail;
  std::atomic<std::uint32_t> armed;    // 0 not, 1 for any, 2 for solicited ones and errors
  std::atomic<std::uint32_t> owed;     // an event the channel's descriptor had no room for
  std::atomic<std::uint32_t> overrun;  // sticky
  std::uint32_t handle;
  std::uint32_t channel;   // number of the owner's channel, 0 for none
  std::uint32_t capacity;  // a power of two
  std::uint64_t entries;   // offset in the segment
};

enum class RegionState : std::uint32_t { free, live, dying };

struct SharedRegion {
  std::atomic<std::uint32_t> state;
  std::atomic<std::uint32_t> key;
  std::atomic<std::uint64_t> address;          // where it is in its process
  std::atomic<std::uint64_t> virtual_address;  // what remote requests call it
  std::atomic<std::uint64_t> length;
  std::atomic<std::uint32_t> access;
  std::atomic<std::uint32_t> domain;
  std::atomic<std::uint32_t> device;
};

struct alignas(64) SharedQueuePair {
  std::atomic<std::uint32_t> number;  // 0: no queue pair here
  std::atomic<std::uint32_t> state;   // ibv_qp_state
  OwnerLock lock;  // held by whoever carries a message in, and by the owner to change what follows
  std::atomic<std::uint32_t> attention;   // its own process's device thread should look at it
  std::atomic<std::uint32_t> peer_waits;  // the peer waits for a receive or for this queue pair to come up
  std::atomic<std::uint32_t> broken_by;  // ibv_event_type + 1 of a peer's bad request, for the owner to raise
  std::uint32_t device;
  std::uint32_t domain;
  std::uint32_t access;
  std::uint32_t peer_number;
  std::uint32_t expected_sequence;  // rq_psn
  std::uint32_t reads_allowed;      // max_dest_rd_atomic
  std::uint32_t receiver_timer;     // min_rnr_timer
  std::uint32_t uses_shared_queue;
  std::uint64_t receive_queue;     // offset of a SharedReceiveQueue
  std::uint64_t completion_queue;  // offset of the SharedCompletionQueue for receives
  std::array<std::uint8_t, 16> own_gid;
  // A receive taken from a shared queue and not completed yet, should its sender die meanwhile.
  std::atomic<std::uint32_t> taken;
  std::uint32_t padding;
  std::uint64_t taken_wr_id;
};

struct SharedHeader {
  std::uint32_t version;
  std::uint32_t slot;
  std::uint32_t pid;
  std::atomic<std::uint32_t> closed;
  std::uint64_t start_time;             // of the process, against reused process ids
  std::atomic<std::uint32_t> doorbell;  // its device thread waits for this to change
  std::atomic<std::uint32_t> sleeping;
  OwnerLock atomics;  // one atomic operation on this process's memory at a time
};

struct SharedSegment {
  SharedHeader header;
  std::array<SharedQueuePair, max_queue_pairs> queue_pairs;
  std::array<SharedRegion, max_regions> regions;
};

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t arena_offset = (sizeof(SharedSegment) + page_bytes - 1) / page_bytes * page_bytes;
constexpr std::size_t segment_bytes = arena_offset + arena_bytes;

static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
              std::atomic<std::uint32_t>::is_always_lock_free);
static_assert(sizeof(SharedCompletion) == 64);

}  // namespace fakeverbs
