// Connections as tests use them: one side of a connection between two peers, and a connection of one thread
// with itself.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "harness/test.hpp"

namespace conformance {

// Long enough for anything that is not meant to wait.
inline constexpr Duration patience = 10s;

// What one completion queue hands out, in order.
class Completions {
 public:
  Completions() = default;
  explicit Completions(weft::CompletionQueue queue) : queue_(std::move(queue)) {}

  // The next one; the test fails when none comes in time.
  [[nodiscard]] weft::Completion next(Duration time = patience);
  [[nodiscard]] std::vector<weft::Completion> take(std::size_t count, Duration time = patience);
  // The next one of this operation, or of this endpoint and operation; others are kept for later.
  [[nodiscard]] weft::Completion next_of(weft::Operation operation, Duration time = patience);
  [[nodiscard]] weft::Completion next_of(weft::Operation operation, const weft::Endpoint& endpoint,
                                         Duration time = patience);
  // Everything of this endpoint up to its `endpoint_ended`, that included.
  [[nodiscard]] std::vector<weft::Completion> until_ended(const weft::Endpoint& endpoint,
                                                          Duration time = patience);
  // What came within `time`: for tests that expect nothing.
  [[nodiscard]] std::vector<weft::Completion> all_within(Duration time);
  // Takes what is there, without waiting. For loops that post until something is taken.
  void collect();
  [[nodiscard]] std::size_t kept() const { return kept_.size(); }
  [[nodiscard]] std::size_t kept_of(weft::Operation operation) const;
  [[nodiscard]] const weft::CompletionQueue& queue() const { return queue_; }

 private:
  using Wanted = std::function<bool(const weft::Completion&)>;
  [[nodiscard]] weft::Completion first(const Wanted& wanted, Duration time, const std::string& what);
  void wait(Duration time);

  weft::CompletionQueue queue_;
  std::deque<weft::Completion> kept_;
};

// Posts until the answer is something other than `again`; the test fails when that takes too long.
template <class Post>
[[nodiscard]] weft::Status post_when_possible(Completions& completions, Post&& post,
                                              Duration time = patience) {
  const Deadline deadline(time);
  while (true) {
    const weft::Status status = post();
    if (status != weft::Status::again || deadline.passed()) return status;
    completions.collect();
  }
}

// As above, but takes nothing meanwhile: for tests that count what waits in the queue. A window may be full
// for a moment although the program sees no reason (OPS-1).
template <class Post>
[[nodiscard]] weft::Status post_soon(Post&& post, Duration time = 2s) {
  const Deadline deadline(time);
  while (true) {
    const weft::Status status = post();
    if (status != weft::Status::again || deadline.passed()) return status;
    std::this_thread::yield();
  }
}

struct SideOptions {
  std::chrono::milliseconds peer_timeout{0};
  std::uint32_t capacity = 1024;
  std::string host;                // where the accepting side listens; empty: host_of()
  weft::EndpointOptions endpoint;  // the queue is put in
  std::function<void(weft::Context&, weft::Endpoint&)>
      prepared;  // before it is up: receives can be posted here
};

// One side of a connection between two peers. Both name the same options, or their own.
struct Side {
  weft::Context context;
  Completions completions;
  weft::Listener listener;  // of the accepting side
  weft::Endpoint endpoint;

  [[nodiscard]] weft::MemoryRegion region(const GuardedBuffer& buffer,
                                          weft::Access access = weft::Access::local_write) {
    return context.register_memory(buffer.bytes(), access);
  }
  // The peer's region, whose key comes over the control channel (give_key on the other side).
  [[nodiscard]] weft::RemoteMemory take_key(Channel& control) {
    const std::string key = control.receive();
    return endpoint.import_memory(std::as_bytes(std::span(key)));
  }
};

inline void give_key(Channel& control, const weft::MemoryRegion& region) { control.send(region.key()); }

// One of the two peers accepts, the other connects; the address goes over the control channel.
[[nodiscard]] Side accept_side(const Test& test, Channel& control, SideOptions options = {});
[[nodiscard]] Side connect_side(const Test& test, Channel& control, SideOptions options = {});
// A further connection between the same contexts.
[[nodiscard]] weft::Endpoint accept_one(Side& side, Channel& control, SideOptions options = {});
[[nodiscard]] weft::Endpoint connect_one(Side& side, Channel& control, SideOptions options = {});

// An address of this host that the context's fabric reaches, without a port: "127.0.0.1".
[[nodiscard]] std::string host_of(const weft::Context& context);

// Waits for an arrival.
[[nodiscard]] weft::ConnectionRequest next_request(Completions& completions, weft::Listener& listener,
                                                   Duration time = patience);

// A context connected to itself; each end has its own queue.
struct Loop {
  weft::Context context;
  Completions near;
  Completions far;
  weft::Listener listener;
  weft::Endpoint near_endpoint;  // connected
  weft::Endpoint far_endpoint;   // accepted

  [[nodiscard]] weft::MemoryRegion region(const GuardedBuffer& buffer,
                                          weft::Access access = weft::Access::local_write) {
    return context.register_memory(buffer.bytes(), access);
  }
};
[[nodiscard]] Loop make_loop(const Test& test, SideOptions options = {});

// One message from `from` to `to`, whose queues are given: the connection works.
void check_ping(weft::Context& context, weft::Endpoint& from, Completions& from_completions,
                weft::Endpoint& to, Completions& to_completions);
inline void check_ping(Loop& loop) {
  check_ping(loop.context, loop.near_endpoint, loop.near, loop.far_endpoint, loop.far);
  check_ping(loop.context, loop.far_endpoint, loop.far, loop.near_endpoint, loop.near);
}

}  // namespace conformance
