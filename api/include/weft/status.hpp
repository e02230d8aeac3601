// One vocabulary for what happened: results of posts, statuses of completions, causes of an endpoint's end,
// codes of exceptions.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "weft/export.hpp"

namespace weft {

enum class [[nodiscard]] Status : std::uint8_t{
    ok = 0,

    // Answers of a post (OPS-1).
    again,  // a queue or window is full, or the endpoint is not up yet: nothing was taken, later it may work
    invalid_argument,  // can never work: bad segment, bad range, missing right, misaligned atomic
    too_big,           // longer than a stated limit
    unsupported,       // this object does not offer the operation
    not_connected,     // the endpoint has ended; stays so for ever

    // Statuses of completions, and causes in `endpoint_ended` (ERR-7).
    cancelled,            // outstanding when its endpoint ended; says nothing about the target (CMP-7)
    truncated,            // a message was longer than its receive (ERR-1)
    remote_access_error,  // only the target could know: region gone or key forged (MEM-4)
    disconnected,         // the peer closed gracefully
    aborted,              // the peer aborted
    peer_lost,            // the peer's process or host is gone (ERR-3)
    protocol,             // the peer broke weft's protocol (SEC-1)
    local_close,          // this side closed or aborted

    // Outcomes of connecting (CON-2).
    refused,         // nobody listens there
    rejected,        // the listener's program said no; its private data tells why
    timed_out,       // the deadline passed
    unreachable,     // no route, or the name does not resolve
    incompatible,    // unlike providers, versions or byte orders; both are named in the text (CON-8)
    resource_limit,  // descriptors, locked memory or another limit; named in the text (MEM-6)

    // Control path.
    busy,          // a transfer still uses the region (MEM-5)
    not_found,     // no such provider, device, interface
    unavailable,   // it exists but cannot run here; the text says why (SEL-3)
    system_error,  // a system call failed in a way that has no name above
};

// The name as written in the source: "ok", "again", … Never null.
[[nodiscard]] WEFT_API std::string_view to_string(Status status) noexcept;

// The one exception of the control path. what() says what failed, with which value, why, and what to do next.
class WEFT_API Error : public std::runtime_error {
 public:
  Error(Status code, const std::string& text) : std::runtime_error(text), code_(code) {}
  [[nodiscard]] Status code() const noexcept { return code_; }

 private:
  Status code_;
};

}  // namespace weft
