// One end of a reliable, ordered connection.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "weft/attributes.hpp"
#include "weft/completion_queue.hpp"
#include "weft/data_path.hpp"
#include "weft/export.hpp"
#include "weft/memory_region.hpp"
#include "weft/receive_queue.hpp"
#include "weft/work_request.hpp"

namespace weft {

namespace core {
class EndpointHandle;
}

// How an endpoint is made, for connecting and for accepting. Depths and sizes are wishes: the limits that
// came of them are Endpoint::limits().
struct EndpointOptions {
  CompletionQueue queue{};                // for both sides; required unless both of the next two are given
  CompletionQueue send_completions{};     // for the send side, instead of `queue`
  CompletionQueue receive_completions{};  // for receives, connect and endpoint_ended, instead of `queue`
  ReceiveQueue shared_receives{};     // takes receives from here; its queue replaces `receive_completions`
  std::uint64_t user_value = 0;       // returned in every completion of the endpoint
  std::uint32_t send_depth = 128;     // outstanding send-side operations, 1 to 65,536
  std::uint32_t receive_depth = 128;  // posted receives, 1 to 65,536; without meaning with shared_receives
  std::uint32_t max_inline = 64;      // bytes wished for; the endpoint opens with what the device gives
  // Connect and accept only: carried to the peer's program, at most Attributes::max_private_data bytes
  // (CON-4).
  std::span<const std::byte> private_data{};
  // Connect: the attempt's deadline, name look-up included (CON-2). Accept: for the handshake to finish.
  std::chrono::milliseconds timeout{10'000};
};

enum class EndpointState : std::uint8_t { connecting, up, closing, ended };

// A handle; copies name the same endpoint. Destroying the last copy closes with a deadline of 1 s, then
// aborts, and drops completions not yet taken (ERR-5). Thread rules: as the context's thread mode.
//
// Posting never blocks, throws or allocates. What it answers is OPS-1: `ok`, `again`, or an error that can
// never become ok. All convenience calls post one signalled operation unless `flags` says otherwise.
class WEFT_API Endpoint {
 public:
  Endpoint() noexcept = default;

  // Waits until the endpoint is up and takes the `connect` completion out of its queue, so that the program
  // does not see it. Throws Error with the outcome (CON-2): refused, rejected, timed_out (also when `timeout`
  // passes first; the attempt goes on then), unreachable, incompatible, protocol, resource_limit, cancelled.
  // Returns the endpoint, so that it can be chained to Context::connect. Blocks; not for a thread that must
  // accept from itself.
  Endpoint wait_up(std::chrono::nanoseconds timeout);

  // ---- posting
  // ----------------------------------------------------------------------------------------------- A batch
  // with one doorbell or one system call (OPS-2).
  PostResult post(std::span<const WorkRequest> requests) noexcept;
  Status post(const WorkRequest& request) noexcept;
  // Receives may be posted before the endpoint is up (CON-5). `unsupported` with shared_receives.
  PostResult post_receives(std::span<const ReceiveRequest> requests) noexcept;

  Status receive(const Segment& segment, std::uint64_t context) noexcept;
  Status send(const Segment& segment, std::uint64_t context, Flags flags = Flags::none) noexcept;
  Status send_with_immediate(const Segment& segment, std::uint32_t immediate, std::uint64_t context,
                             Flags flags = Flags::none) noexcept;
  Status write(const Segment& source, const RemoteSegment& target, std::uint64_t context,
               Flags flags = Flags::none) noexcept;
  Status write_with_immediate(const Segment& source, const RemoteSegment& target, std::uint32_t immediate,
                              std::uint64_t context, Flags flags = Flags::none) noexcept;
  Status read(const Segment& destination, const RemoteSegment& source, std::uint64_t context,
              Flags flags = Flags::none) noexcept;
  // `result`: 8 bytes for the value found; `target`: a multiple of 8 (OPS-5).
  Status fetch_add(const Segment& result, const RemoteSegment& target, std::uint64_t operand,
                   std::uint64_t context, Flags flags = Flags::none) noexcept;
  Status compare_swap(const Segment& result, const RemoteSegment& target, std::uint64_t compare,
                      std::uint64_t swap, std::uint64_t context, Flags flags = Flags::none) noexcept;
  Status flush(std::uint64_t context, Flags flags = Flags::none) noexcept;

  // ---- the peer's memory
  // --------------------------------------------------------------------------------------- Imports a key
  // made by the peer (MemoryRegion::key). Throws Error: invalid_argument for a malformed, altered or foreign
  // key (MEM-3), not_connected when the endpoint is not up.
  [[nodiscard]] RemoteMemory import_memory(std::span<const std::byte> key);

  // ---- ending
  // --------------------------------------------------------------------------------------------------
  // Graceful (ERR-4): every accepted send is delivered, then the peer sees `disconnected`. Returns at once;
  // done when `endpoint_ended` is taken, at the latest after `deadline`, when what is left is dropped.
  // Closing an endpoint that is still connecting cancels the attempt.
  void close(std::chrono::nanoseconds deadline);
  // Ends at once; what was not yet delivered may be dropped, the peer has a clean prefix (ERR-4).
  void abort();

  // ---- asking
  // --------------------------------------------------------------------------------------------------
  [[nodiscard]] EndpointState state() const;
  // ok while the endpoint lives; afterwards the first cause (ERR-2). describe_end() says it in words.
  [[nodiscard]] Status cause() const;
  [[nodiscard]] std::string describe_end() const;
  // Negotiated limits once up; before, the wished ones (CON-8).
  [[nodiscard]] Limits limits() const;
  // "host:port" of both sides, numeric.
  [[nodiscard]] std::string local_address() const;
  [[nodiscard]] std::string peer_address() const;
  // Private data that came with the peer's accept or reject; empty before (CON-4).
  [[nodiscard]] std::span<const std::byte> peer_private_data() const;
  // Unique within the context, never 0, not reused while completions name it.
  [[nodiscard]] std::uint32_t id() const noexcept;
  [[nodiscard]] std::uint64_t user_value() const noexcept;

  [[nodiscard]] explicit operator bool() const noexcept { return handle_ != nullptr; }

 private:
  friend class Context;
  friend struct core::Opener;
  explicit Endpoint(std::shared_ptr<core::EndpointHandle> handle) noexcept;

  // What carries the data, at hand without a look into what `handle_` names: with many endpoints that is one
  // cache miss less for each post.
  core::Aside<provider::Endpoint> path_;
  std::shared_ptr<core::EndpointHandle> handle_;
};

inline PostResult Endpoint::post(std::span<const WorkRequest> requests) noexcept {
  if (path_.get() == nullptr) [[unlikely]]
    return {Status::not_connected, 0};
  return path_.get()->post(requests.data(), requests.size());
}

inline Status Endpoint::post(const WorkRequest& request) noexcept { return post({&request, 1}).status; }

inline PostResult Endpoint::post_receives(std::span<const ReceiveRequest> requests) noexcept {
  if (path_.get() == nullptr) [[unlikely]]
    return {Status::not_connected, 0};
  return path_.get()->post_receives(requests.data(), requests.size());
}

inline Status Endpoint::receive(const Segment& segment, std::uint64_t context) noexcept {
  const ReceiveRequest request{.context = context, .segments = {&segment, 1}};
  return post_receives({&request, 1}).status;
}

inline Status Endpoint::send(const Segment& segment, std::uint64_t context, Flags flags) noexcept {
  return post({.operation = Operation::send,
               .flags = flags,
               .context = context,
               .segments = {&segment, 1},
               .remote = {}});
}

inline Status Endpoint::send_with_immediate(const Segment& segment, std::uint32_t immediate,
                                            std::uint64_t context, Flags flags) noexcept {
  return post({.operation = Operation::send,
               .flags = flags | Flags::with_immediate,
               .immediate = immediate,
               .context = context,
               .segments = {&segment, 1},
               .remote = {}});
}

inline Status Endpoint::write(const Segment& source, const RemoteSegment& target, std::uint64_t context,
                              Flags flags) noexcept {
  return post({.operation = Operation::write,
               .flags = flags,
               .context = context,
               .segments = {&source, 1},
               .remote = target});
}

inline Status Endpoint::write_with_immediate(const Segment& source, const RemoteSegment& target,
                                             std::uint32_t immediate, std::uint64_t context,
                                             Flags flags) noexcept {
  return post({.operation = Operation::write_with_immediate,
               .flags = flags,
               .immediate = immediate,
               .context = context,
               .segments = {&source, 1},
               .remote = target});
}

inline Status Endpoint::read(const Segment& destination, const RemoteSegment& source, std::uint64_t context,
                             Flags flags) noexcept {
  return post({.operation = Operation::read,
               .flags = flags,
               .context = context,
               .segments = {&destination, 1},
               .remote = source});
}

inline Status Endpoint::fetch_add(const Segment& result, const RemoteSegment& target, std::uint64_t operand,
                                  std::uint64_t context, Flags flags) noexcept {
  return post({.operation = Operation::fetch_add,
               .flags = flags,
               .context = context,
               .segments = {&result, 1},
               .remote = target,
               .operand = operand});
}

inline Status Endpoint::compare_swap(const Segment& result, const RemoteSegment& target,
                                     std::uint64_t compare, std::uint64_t swap, std::uint64_t context,
                                     Flags flags) noexcept {
  return post({.operation = Operation::compare_swap,
               .flags = flags,
               .context = context,
               .segments = {&result, 1},
               .remote = target,
               .operand = swap,
               .compare = compare});
}

inline Status Endpoint::flush(std::uint64_t context, Flags flags) noexcept {
  return post(
      {.operation = Operation::flush, .flags = flags, .context = context, .segments = {}, .remote = {}});
}

}  // namespace weft
