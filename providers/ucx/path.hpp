// The way from one worker to another: one UCP endpoint, shared by all weft endpoints between the two queues.
//
// Not one for each: UCX pairs the UCP endpoints of two workers by the order in which each side made them, so
// two of them can get crossed, and closing one would then end a stranger (ERR-2). What is shared here can
// only fail as a whole, since UCX moves nothing but checked messages from memory of the library. For the same
// reason a path outlives the endpoints on it: it ends with its queue, or when it breaks.
#pragma once

#include <ucp/api/ucp.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::ucx {

class UcxEndpoint;
class UcxQueue;

struct Path {
  UcxQueue* queue = nullptr;
  std::vector<std::byte> address;  // of the peer's worker: what names the path
  // With a listener: the number of the peer's worker, and whether that side connects. Then `endpoint` is null
  // until it did, and nobody waits for `ready`.
  std::uint64_t number = 0;
  bool awaited = false;
  std::chrono::steady_clock::time_point missed_since{};  // somebody counts on it, and nobody came
  std::uint32_t looks = 0;                               // since then
  ucp_ep_h endpoint = nullptr;
  std::vector<UcxEndpoint*> members;
  std::uint32_t under_way = 0;  // messages in UCX's hands
  bool unwoken = false;         // UCX wakes neither side from the other
  bool ready = false;           // the peer's worker has answered: from here on sleepers have peace (PRG-4)
  // Without members since. When messages are under way, the peer's process is gone, or will take them soon.
  std::chrono::steady_clock::time_point deserted{};
  ucs_status_t broken = UCS_OK;
  bool dropped = false;  // because of that: nobody is on it any more
};

}  // namespace weft::ucx
