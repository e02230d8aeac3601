// Two sides of engine endpoints in one thread over a message fabric in memory: the message family without
// any real one.
#pragma once

#include <span>

#include "fake_fabric.hpp"

namespace weft::engine::test {

class FakeContextEvents final : public provider::ContextEvents {
 public:
  void request_service() noexcept override { ++requests; }
  std::atomic<int> requests{0};
};

class RingingEvents final : public FakeEvents {
 public:
  void ring_peer() noexcept override { ++rings; }
  int rings = 0;
};

// One endpoint with what belongs to it.
struct MessageEnd {
  RingingEvents events;
  std::unique_ptr<FakeFabricEndpoint> endpoint;
  provider::Endpoint::Imported peer_memory;
  int rings_carried = 0;
};

// A context with one queue, memory, and endpoints.
class MessageSide {
 public:
  struct Options {
    FabricWeather weather{};
    EngineOptions engine{};
    MessageOptions messages{};
    std::size_t endpoints = 1;
    std::uint32_t send_depth = 64;
  };
  MessageSide(std::uint32_t id, const Options& options)
      : context(host, open_request(context_events), options.engine, options.messages),
        queue(context, 4096, queue_events, options.weather),
        memory(std::size_t{1} << 20),
        ends(options.endpoints) {
    for (std::size_t i = 0; i < ends.size(); ++i) {
      provider::EndpointRequest request;
      request.id = id + static_cast<std::uint32_t>(i);
      request.user_value = request.id;
      request.send_queue = &queue;
      request.receive_queue = &queue;
      request.send_depth = options.send_depth;
      request.receive_depth = 64;
      request.max_inline = 64;
      request.events = &ends[i].events;
      ends[i].endpoint = std::make_unique<FakeFabricEndpoint>(context, queue, request);
    }
    region = context.register_memory({.address = memory.data(),
                                      .length = memory.size(),
                                      .access = weft::Access::local_write | weft::Access::remote_read |
                                                weft::Access::remote_write | weft::Access::remote_atomic});
  }
  ~MessageSide() {
    for (MessageEnd& end : ends) {
      end.endpoint->end({});
      end.endpoint->silence();
      end.endpoint.reset();
    }
  }
  MessageSide(const MessageSide&) = delete;
  MessageSide& operator=(const MessageSide&) = delete;

  [[nodiscard]] std::uint64_t counter(std::string_view name) const {
    for (const Counter& counter : context.counters()) {
      if (counter.name == name) return counter.value;
    }
    ADD_FAILURE() << "no counter " << name;
    return 0;
  }
  void poll() {
    std::array<Completion, 16> entries;
    const std::size_t count = queue.poll(entries.data(), entries.size());
    seen.insert(seen.end(), entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(count));
  }
  [[nodiscard]] Segment segment(std::uint64_t offset, std::uint64_t length) const {
    return {region->token(), offset, length};
  }
  void fill(std::uint64_t offset, std::uint64_t length, std::uint64_t seed) {
    for (std::uint64_t i = 0; i < length; ++i) memory[offset + i] = static_cast<std::byte>(seed + i * 7);
  }
  [[nodiscard]] bool holds(std::uint64_t offset, std::uint64_t length, std::uint64_t seed) const {
    for (std::uint64_t i = 0; i < length; ++i) {
      if (memory[offset + i] != static_cast<std::byte>(seed + i * 7)) return false;
    }
    return true;
  }
  Status receive(std::uint64_t offset, std::uint64_t length, std::uint64_t value, std::size_t which = 0) {
    const Segment place = segment(offset, length);
    const ReceiveRequest request{value, std::span(&place, 1)};
    return ends[which].endpoint->post_receives(&request, 1).status;
  }
  Status post(Operation operation, std::uint64_t offset, std::uint64_t length, std::uint64_t value,
              std::uint64_t remote_offset = 0, std::size_t which = 0) {
    const Segment place = segment(offset, length);
    WorkRequest request;
    request.operation = operation;
    request.segments = std::span(&place, 1);
    request.remote = {ends[which].peer_memory.token, remote_offset};
    request.context = value;
    return ends[which].endpoint->post(&request, 1).status;
  }

  FakeHost host;
  FakeContextEvents context_events;
  FakeQueueEvents queue_events;
  FakeFabricContext context;
  FakeFabricQueue queue;
  std::vector<std::byte> memory;
  std::vector<MessageEnd> ends;
  std::unique_ptr<provider::MemoryRegion> region;
  std::vector<Completion> seen;

 private:
  static provider::OpenRequest open_request(provider::ContextEvents& events) {
    provider::OpenRequest request;
    request.events = &events;
    return request;
  }
};

class MessagePair {
 public:
  explicit MessagePair(const MessageSide::Options& options = {}) : a(100, options), b(200, options) {
    for (std::size_t i = 0; i < a.ends.size(); ++i) {
      establish(a.ends[i], b.ends[i], true);
      establish(b.ends[i], a.ends[i], false);
    }
  }
  void go_up() {
    for (std::size_t i = 0; i < a.ends.size(); ++i) {
      a.ends[i].endpoint->go_up();
      b.ends[i].endpoint->go_up();
      a.ends[i].peer_memory = a.ends[i].endpoint->import_key(b.region->key());
      b.ends[i].peer_memory = b.ends[i].endpoint->import_key(a.region->key());
    }
    settle();
    a.seen.clear();
    b.seen.clear();
  }
  // As the core carries rings over its own connections.
  void carry_rings() {
    for (std::size_t i = 0; i < a.ends.size(); ++i) {
      carry(a.ends[i], b.ends[i]);
      carry(b.ends[i], a.ends[i]);
    }
  }
  void settle() {
    for (int quiet = 0; quiet < 20;) {
      const std::size_t before = a.queue.inbox.size() + b.queue.inbox.size();
      const std::size_t seen_before = a.seen.size() + b.seen.size();
      a.poll();
      b.poll();
      const bool moved = before != 0 || a.queue.inbox.size() + b.queue.inbox.size() != 0 ||
                         a.seen.size() + b.seen.size() != seen_before;
      quiet = moved ? 0 : quiet + 1;
    }
  }

  MessageSide a;
  MessageSide b;

 private:
  static void carry(MessageEnd& from, MessageEnd& to) {
    for (; from.rings_carried < from.events.rings; ++from.rings_carried) to.endpoint->rung();
  }
  static void establish(MessageEnd& end, MessageEnd& other, bool initiator) {
    provider::PeerParameters peer;
    peer.protocol = 1;
    const auto blob = other.endpoint->blob({});
    peer.blob = blob;
    peer.limits = end.endpoint->limits();
    peer.initiator = initiator;
    if (!end.endpoint->establish(peer)) std::abort();
  }
};

}  // namespace weft::engine::test
