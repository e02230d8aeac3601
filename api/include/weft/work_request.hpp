// What a program hands to an endpoint: segments, remote segments, work requests. All are plain values; they
// are checked when posted, not when made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "weft/flags.hpp"
#include "weft/status.hpp"

namespace weft {

enum class Operation : std::uint8_t {
  // Send side.
  send,
  write,
  write_with_immediate,
  read,
  fetch_add,
  compare_swap,
  flush,
  // Receive side. A receive also completes for a peer's write_with_immediate.
  receive,
  // Reports; they use no room in a queue (CMP-6).
  connect,             // an endpoint came up, or could not (status)
  connection_request,  // a listener has an arrival: call Listener::next()
  endpoint_ended,      // the last completion of an endpoint that was up (ERR-7)
  low_water,           // a receive queue fell to its mark (RCQ-2)
};

// The name as written in the source. Never null.
[[nodiscard]] WEFT_API std::string_view to_string(Operation operation) noexcept;

// A piece of local memory: `length` bytes at `offset` of a registered region (MEM-2). Make one with
// MemoryRegion::slice. Without a region (`region` 0) it is a plain address and good for inline operations
// only.
struct Segment {
  std::uint64_t region = 0;  // the region's token; 0: none, `offset` is an address
  std::uint64_t offset = 0;  // bytes from the start of the region
  std::uint64_t length = 0;  // bytes

  // Bytes anywhere in memory, for operations with Flags::inline_data.
  [[nodiscard]] static Segment inline_bytes(const void* address, std::size_t length) noexcept {
    return {0, reinterpret_cast<std::uintptr_t>(address), length};
  }
};

// A place in the peer's memory: `offset` bytes from the start of an imported region. Make one with
// RemoteMemory::at. The length is that of the local segments.
struct RemoteSegment {
  std::uint64_t memory = 0;  // the imported region's token
  std::uint64_t offset = 0;  // bytes
};

// One operation of the send side.
//   send                  segments -> the peer's next receive; immediate with Flags::with_immediate
//   write                 segments -> remote
//   write_with_immediate  segments -> remote, then `immediate` and the length to the peer's next receive
//   read                  remote -> segments
//   fetch_add             adds `operand` to the 64-bit value at remote; old value -> segments (8 bytes)
//   compare_swap          puts `operand` there if the value equals `compare`; old value -> segments (8 bytes)
//   flush                 completes when all earlier writes and atomics are visible to the target's CPU
//   (OPS-11)
struct WorkRequest {
  Operation operation = Operation::send;
  Flags flags = Flags::none;
  std::uint32_t immediate = 0;          // host order
  std::uint64_t context = 0;            // returned in the completion, never looked at (OPS-10)
  std::span<const Segment> segments{};  // read during the post only
  RemoteSegment remote{};
  std::uint64_t operand = 0;
  std::uint64_t compare = 0;
};

// One receive: where the next message goes. Its completion tells how many bytes came.
struct ReceiveRequest {
  std::uint64_t context = 0;
  std::span<const Segment> segments{};  // read during the post only; may be empty for zero-length messages
};

// The answer to a batch (OPS-2): the first `accepted` requests were taken, in order; `status` is ok when that
// is all of them, otherwise why request number `accepted` was not taken. The rest are untouched.
struct [[nodiscard]] PostResult {
  Status status = Status::ok;
  std::size_t accepted = 0;
};

}  // namespace weft
