// The same side of a connection over weft, so that the same loops do the same work through it: what differs
// is weft.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <weft/weft.hpp>

#include "exchange.hpp"
#include "link_memory.hpp"
#include "options.hpp"
#include "work.hpp"

namespace weft::native {

class WeftLink : public LinkMemory {
 public:
  struct Device {
    explicit Device(const Options& options);
    Context context;
    std::string name;
  };
  using Request = WorkRequest;
  using Place = Segment;

  // The initiator connects, the other side listens. Memory, depths and what is asked for are those of Link.
  WeftLink(Device& device, Exchange& exchange, const Work& work, bool initiator);
  WeftLink(const WeftLink&) = delete;
  WeftLink& operator=(const WeftLink&) = delete;
  ~WeftLink();

  void prepare(Request& request, Place& place, std::uint64_t sequence) const;
  void mark(Request& request, std::uint64_t number, bool signal) const {
    request.context = number;
    request.flags = signal ? inline_flag_ : inline_flag_ | Flags::unsignalled;
  }
  // A batch needs no chain.
  static void join(std::span<Request> /*requests*/) {}

  void post(std::span<Request> requests) {
    const PostResult result = endpoint_.post(requests);
    if (result.status != Status::ok) [[unlikely]]
      fail("posting", result.status);
  }
  void post_receives(std::uint32_t count) {
    const PostResult result = endpoint_.post_receives({receive_requests_.data(), count});
    if (result.status != Status::ok) [[unlikely]]
      fail("posting receives", result.status);
  }
  [[nodiscard]] std::uint32_t receive_depth() const { return receive_depth_; }

  // One queue serves both sides, as is usual with weft.
  [[nodiscard]] std::uint64_t poll_sent() {
    poll();
    return std::exchange(sent_, 0);  // wait_receive may have come upon it
  }
  [[nodiscard]] std::uint32_t poll_received() {
    poll();
    return static_cast<std::uint32_t>(std::exchange(received_, 0));
  }
  void wait_receive() {
    for (unsigned spins = 0; received_ == 0; ++spins) {
      poll();
      if (spins != look_interval) continue;
      exchange_.check_peer();
      spins = 0;
    }
    --received_;
  }
  // Of the device, those of weft itself included.
  [[nodiscard]] Counts counts() const;
  void idle() {
    if ((++idle_count_ & look_interval) == 0) exchange_.check_peer();
  }

  static constexpr std::uint32_t receive_chunk = 32;

 private:
  static constexpr unsigned look_interval = 0xffff;

  void poll() {
    for (const Completion& completion : queue_.poll(completions_)) {
      if (completion.status != Status::ok) [[unlikely]]
        fail(completion);
      if (completion.operation == weft::Operation::receive) {
        ++received_;
      } else {
        sent_ = completion.context;
      }
    }
  }
  void connect(Device& device, const EndpointOptions& options, bool initiator);
  [[noreturn]] void fail(const Completion& completion) const;
  [[noreturn]] void fail(const char* what, Status status) const;

  Exchange& exchange_;
  Context context_;
  Operation operation_;
  std::uint32_t receive_depth_;
  Flags inline_flag_ = Flags::none;
  std::uint64_t sent_ = 0;
  std::uint64_t received_ = 0;  // and not asked for yet
  std::uint64_t idle_count_ = 0;
  CompletionQueue queue_;
  MemoryRegion region_;
  Endpoint endpoint_;
  RemoteMemory remote_;
  Segment receive_segment_;
  std::array<ReceiveRequest, receive_chunk> receive_requests_{};
  std::array<Completion, 16> completions_{};
};

}  // namespace weft::native
