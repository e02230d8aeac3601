// One end of a weft connection as the workloads need it: receives posted ahead and recycled in batches,
// counters instead of callbacks, every failure an exception.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>
#include <weft/weft.hpp>

#include "buffers.hpp"

namespace perf {

struct LinkPlan {
  std::string provider;
  std::uint32_t send_depth = 128;
  std::uint32_t receive_slots = 128;  ///< Receives always posted, one slot of memory each.
  std::size_t receive_size = 64;      ///< Bytes of a slot.
  std::size_t target_size = 0;        ///< Bytes of a slot the peer may write and read; 0: none.
  std::size_t target_slots = 1;
};

class WeftLink {
 public:
  explicit WeftLink(const LinkPlan& plan);
  WeftLink(const WeftLink&) = delete;
  WeftLink& operator=(const WeftLink&) = delete;
  /// Aborts: when the work is over nothing is left to deliver, and the next row should not wait for a
  /// goodbye.
  ~WeftLink();

  // ---- connecting
  void listen();
  [[nodiscard]] std::string address() const { return listener_.address(); }
  void accept();
  void connect(const std::string& address);
  [[nodiscard]] std::string fabric() const;

  // ---- memory
  /// Registers a buffer for sending from or reading into.
  [[nodiscard]] weft::MemoryRegion register_buffer(SlotBuffer& buffer);
  [[nodiscard]] SlotBuffer& target() { return target_; }
  [[nodiscard]] weft::RemoteSegment peer_target(std::uint64_t slot) const {
    return remote_.at(target_.offset(slot));
  }

  // ---- the data path
  /// Takes what has completed and counts it.
  void poll() {
    const weft::Polled polled = queue_.poll(entries_);
    for (const weft::Completion& completion : polled) {
      if (completion.status != weft::Status::ok) [[unlikely]]
        fail(completion);
      if (completion.operation == weft::Operation::receive) {
        ++received_;
      } else {
        completed_ = completion.context;
      }
    }
    if (polled.reason() == weft::Polled::Reason::failed) [[unlikely]]
      fail("poll: the completion queue is unusable");
  }

  /// The next message, spinning until it is there. Its memory stays as it is until recycle().
  std::byte* take_message() {
    while (received_ == taken_) poll();
    return receives_.slot(taken_++);
  }

  /// Posts the receives of taken messages again, once there are enough for a batch.
  void recycle() {
    if (taken_ - recycled_ >= recycle_batch_) post_receives(recycle_batch_);
  }

  /// Posts all requests with one call; only what was not taken is tried again.
  void post(std::span<const weft::WorkRequest> requests) {
    for (;;) {
      const weft::PostResult result = endpoint_.post(requests);
      if (result.status == weft::Status::ok) return;
      if (result.status != weft::Status::again) [[unlikely]]
        fail("post", result.status);
      requests = requests.subspan(result.accepted);
      poll();
    }
  }

  /// The context of the last signalled operation that completed. Workloads use ascending contexts, so all up
  /// to this one are complete (CMP-4).
  [[nodiscard]] std::uint64_t completed() const { return completed_; }
  void wait_completed(std::uint64_t context) {
    while (completed_ < context) poll();
  }

  /// Up to max_inline bytes, copied at once, no completion.
  void send_inline(const void* bytes, std::size_t length);
  [[nodiscard]] bool can_inline(std::size_t length) const { return length <= max_inline_; }

  // ---- between the timed parts
  /// Untimed round trips of a small message.
  void meet_as_client();
  void meet_as_server();
  /// One small message that tells the peer something is over.
  void send_word();
  void take_word();

 private:
  [[nodiscard]] weft::EndpointOptions endpoint_options() const;
  void post_receives(std::uint64_t count);
  void use_peer_key(std::span<const std::byte> key);
  [[noreturn]] void fail(const weft::Completion& completion) const;
  [[noreturn]] static void fail(const std::string& what, weft::Status status = weft::Status::system_error);

  LinkPlan plan_;
  weft::Context context_;
  weft::CompletionQueue queue_;
  SlotBuffer receives_;
  SlotBuffer target_;
  weft::MemoryRegion receive_region_;
  weft::MemoryRegion target_region_;
  std::vector<weft::Segment> receive_segments_;
  std::vector<weft::ReceiveRequest> receive_requests_;
  weft::Listener listener_;
  weft::Endpoint endpoint_;
  weft::RemoteMemory remote_;
  std::array<weft::Completion, 64> entries_;
  std::uint64_t recycle_batch_;
  std::uint64_t received_ = 0;
  std::uint64_t taken_ = 0;
  std::uint64_t recycled_ = 0;
  std::uint64_t completed_ = 0;
  std::size_t max_inline_ = 0;
};

}  // namespace perf
