// Two engine endpoints in one thread over byte streams in memory, which tear and hold back at will (by seed):
// the engine without any fabric.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "context.hpp"
#include "endpoint.hpp"
#include "group.hpp"

namespace weft::engine::test {

class FakeHost final : public provider::Host {
 public:
  void log(LogLevel /*level*/, std::string_view /*line*/) noexcept override {}
  [[nodiscard]] bool logs(LogLevel /*level*/) const noexcept override { return false; }
  [[nodiscard]] std::optional<std::string> variable(std::string_view /*name*/) const override { return {}; }
  void random_bytes(std::span<std::byte> out) const override {
    static std::mt19937_64 random(42);
    for (std::byte& byte : out) byte = static_cast<std::byte>(random());
  }
};

class FakeQueueEvents final : public provider::QueueEvents {
 public:
  void readable() noexcept override { ++signals; }
  int signals = 0;
};

class FakeEvents : public provider::EndpointEvents {
 public:
  void failed(Status cause, std::uint64_t detail_value, std::int32_t /*native*/,
              std::string_view text) noexcept override {
    failure = cause;
    detail = detail_value;
    what = text;
    ++failures;
  }
  void established() noexcept override {}
  void ring_peer() noexcept override {}
  void drained(std::uint64_t messages) noexcept override {
    drained_messages = messages;
    ++drains;
  }
  void finished() noexcept override { ++finishes; }

  Status failure = Status::ok;
  std::uint64_t detail = 0;
  std::string what;
  int failures = 0;
  int drains = 0;
  int finishes = 0;
  std::uint64_t drained_messages = 0;
};

// How the stream behaves.
struct Weather {
  std::size_t capacity = std::size_t{1} << 20;  // bytes under way before there is no room
  std::size_t most_taken = ~std::size_t{0};     // by one transmission, random up to this
  std::size_t most_delivered = ~std::size_t{0};
  std::uint64_t seed = 1;
};

class PlainQueue final : public Group {
 public:
  PlainQueue(Context& context, std::uint32_t capacity, provider::QueueEvents& events)
      : Group(context.thread_mode(), capacity, events), context_(context) {
    context_.add_group(*this);
  }
  ~PlainQueue() override { context_.remove_group(*this); }
  std::size_t poll(Completion* out, std::size_t room) noexcept override {
    const Entry entry(gate());
    return take(out, room);
  }
  [[nodiscard]] int descriptor() override { return -1; }
  [[nodiscard]] bool arm() noexcept override {
    const Entry entry(gate());
    return arm_ring();
  }

 protected:
  void want_helper() noexcept override {}

 private:
  Context& context_;
};

class PlainContext final : public Context {
 public:
  PlainContext(provider::Host& host, const EngineOptions& options)
      : Context(host, provider::OpenRequest{}, options) {
    fill_attributes(attributes_);
  }
  [[nodiscard]] const Attributes& attributes() const noexcept override { return attributes_; }
  [[nodiscard]] bool keeps_connection() const noexcept override { return false; }
  [[nodiscard]] ProtocolRange protocol() const noexcept override { return {}; }
  [[nodiscard]] std::unique_ptr<provider::CompletionQueue> create_completion_queue(
      std::uint32_t capacity, provider::QueueEvents& events) override {
    return std::make_unique<PlainQueue>(*this, capacity, events);
  }
  [[nodiscard]] std::unique_ptr<provider::Endpoint> prepare_endpoint(
      const provider::EndpointRequest&) override {
    return nullptr;
  }
  Clock::time_point service(Clock::time_point) noexcept override { return Clock::time_point::max(); }
  [[nodiscard]] int service_descriptor() noexcept override { return -1; }

 private:
  Attributes attributes_;
};

class StreamEndpoint final : public Endpoint {
 public:
  StreamEndpoint(Context& context, Group& group, const provider::EndpointRequest& request,
                 const Weather& weather)
      : Endpoint(context, group, request), weather_(weather), random_(weather.seed) {}

  StreamEndpoint* peer = nullptr;
  std::vector<std::byte> incoming;
  std::size_t delivered = 0;  // of incoming
  std::size_t transmissions = 0;
  std::vector<std::byte> captured;  // everything transmitted, when capturing
  bool capturing = false;
  bool swallows = false;  // what is transmitted is taken and lost

  [[nodiscard]] std::size_t under_way() const { return incoming.size() - delivered; }

  // Delivers some of what is under way; false when nothing was.
  bool deliver() {
    const Entry entry(group().gate());
    if (!moving() || under_way() == 0) return false;
    std::array<iovec, 2> places;
    const int count = inbound(places);
    std::size_t left = std::min(under_way(), pick(weather_.most_delivered));
    std::size_t put = 0;
    for (int i = 0; i < count && left != 0; ++i) {
      const iovec& place = places[static_cast<std::size_t>(i)];
      const std::size_t part = std::min(left, place.iov_len);
      std::memcpy(place.iov_base, incoming.data() + delivered, part);
      delivered += part;
      put += part;
      left -= part;
    }
    if (delivered == incoming.size()) {
      incoming.clear();
      delivered = 0;
    }
    if (arrived(put)) settle();
    return true;
  }
  // A part of one of what is being fetched is there; false when nothing is.
  bool fetch(std::uint64_t which) {
    const Entry entry(group().gate());
    if (context().options().offer_from == 0 || !moving() || first_pull() == pulls_end()) return false;
    std::uint64_t number = first_pull() + which % (pulls_end() - first_pull());
    while (!pulling(number)) number = number + 1 == pulls_end() ? first_pull() : number + 1;
    const Piece place = pull_place(number, 1 + which % 1000);
    std::memset(place.address, 0x5e, place.length);
    pulled(number, place.length);
    settle();
    return true;
  }
  void resume() {
    const Entry entry(group().gate());
    push_output();
  }
  void lose_path() {
    const Entry entry(group().gate());
    path_broken(104, "the path is cut");
  }
  void hold_back_no_more() {
    const Entry entry(group().gate());
    send_held_back();
  }

 protected:
  std::ptrdiff_t transmit(const iovec* pieces, int count) noexcept override {
    ++transmissions;
    if (swallows) return std::accumulate(pieces, pieces + count, std::ptrdiff_t{0}, add_length);
    if (peer == nullptr) return 0;
    std::size_t room = weather_.capacity - std::min(weather_.capacity, peer->under_way());
    room = std::min(room, pick(weather_.most_taken));
    std::size_t taken = 0;
    for (int i = 0; i < count && taken < room; ++i) {
      const auto* from = static_cast<const std::byte*>(pieces[i].iov_base);
      const std::size_t part = std::min(room - taken, pieces[i].iov_len);
      peer->incoming.insert(peer->incoming.end(), from, from + part);
      if (capturing) captured.insert(captured.end(), from, from + part);
      taken += part;
    }
    return static_cast<std::ptrdiff_t>(taken);
  }
  [[nodiscard]] std::size_t offer(const Piece& memory, std::span<std::byte> token) noexcept override {
    wire::store(token.data(), memory.address);
    return sizeof memory.address;
  }
  void output_waits(bool /*waits*/) noexcept override {}
  void attach() noexcept override {}
  void detach() noexcept override {}

 private:
  static std::ptrdiff_t add_length(std::ptrdiff_t sum, const iovec& piece) {
    return sum + static_cast<std::ptrdiff_t>(piece.iov_len);
  }
  std::size_t pick(std::size_t most) {
    if (most == ~std::size_t{0}) return most;
    return std::uniform_int_distribution<std::size_t>(1, most)(random_);
  }

  Weather weather_;
  std::mt19937_64 random_;
};

// One side: a context, a queue, an endpoint, and memory registered with all rights.
class Side {
 public:
  struct Options {
    EngineOptions engine{};
    std::uint32_t capacity = 1024;
    std::uint32_t send_depth = 64;
    std::uint32_t receive_depth = 64;
    bool shared = false;
    std::size_t memory = std::size_t{1} << 20;
    Weather weather{};
  };

  Side(std::uint32_t id, const Options& options, bool strict = false)
      : context(host, options.engine),
        queue(context, options.capacity, queue_events),
        memory(options.memory) {
    if (strict) static_cast<void>(context.complete_sends_when_matched());
    provider::EndpointRequest request;
    request.id = id;
    request.user_value = id * 1000;
    request.send_queue = &queue;
    request.receive_queue = &queue;
    request.send_depth = options.send_depth;
    request.receive_depth = options.receive_depth;
    request.max_inline = 64;
    request.events = &events;
    if (options.shared) {
      shared = context.create_receive_queue(queue, options.receive_depth, 7);
      request.shared_receives = shared.get();
    }
    endpoint = std::make_unique<StreamEndpoint>(context, queue, request, options.weather);
    region = context.register_memory({.address = memory.data(),
                                      .length = memory.size(),
                                      .access = weft::Access::local_write | weft::Access::remote_read |
                                                weft::Access::remote_write | weft::Access::remote_atomic});
  }
  ~Side() {
    endpoint->silence();
    endpoint.reset();
    shared.reset();
  }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  [[nodiscard]] Segment segment(std::uint64_t offset, std::uint64_t length) const {
    return {region->token(), offset, length};
  }
  void fill(std::uint64_t offset, std::uint64_t length, std::uint8_t seed) {
    for (std::uint64_t i = 0; i < length; ++i) memory[offset + i] = static_cast<std::byte>(seed + i * 7);
  }
  [[nodiscard]] bool holds(std::uint64_t offset, std::uint64_t length, std::uint8_t seed) const {
    for (std::uint64_t i = 0; i < length; ++i) {
      if (memory[offset + i] != static_cast<std::byte>(seed + i * 7)) return false;
    }
    return true;
  }

  Status receive(const Segment& segment, std::uint64_t context_value) {
    const ReceiveRequest request{context_value, std::span(&segment, 1)};
    return shared != nullptr ? shared->post(&request, 1).status : endpoint->post_receives(&request, 1).status;
  }
  Status post(const WorkRequest& request) { return endpoint->post(&request, 1).status; }
  Status send(const Segment& segment, std::uint64_t context_value, Flags flags = Flags::none,
              std::uint32_t immediate = 0) {
    WorkRequest request;
    request.segments = std::span(&segment, 1);
    request.context = context_value;
    request.flags = flags;
    request.immediate = immediate;
    return post(request);
  }
  Status one_sided(Operation operation, const Segment& local, const RemoteSegment& remote,
                   std::uint64_t context_value, Flags flags = Flags::none, std::uint64_t operand = 0,
                   std::uint64_t compare = 0) {
    WorkRequest request;
    request.operation = operation;
    if (operation != Operation::flush) request.segments = std::span(&local, 1);
    request.remote = remote;
    request.context = context_value;
    request.flags = flags;
    request.operand = operand;
    request.compare = compare;
    request.immediate = static_cast<std::uint32_t>(context_value);
    return post(request);
  }

  FakeHost host;
  FakeQueueEvents queue_events;
  FakeEvents events;
  PlainContext context;
  PlainQueue queue;
  std::vector<std::byte> memory;
  std::unique_ptr<provider::ReceiveQueue> shared;
  std::unique_ptr<StreamEndpoint> endpoint;
  std::unique_ptr<provider::MemoryRegion> region;
  std::vector<Completion> seen;
};

class Pair {
 public:
  // `strict`: what a sends completes when it is matched.
  explicit Pair(const Side::Options& a_options = {}, const Side::Options& b_options = {}, bool strict = false)
      : a(1, a_options, strict), b(2, b_options) {
    a.endpoint->peer = b.endpoint.get();
    b.endpoint->peer = a.endpoint.get();
    establish(a, b, true);
    establish(b, a, false);
  }
  void go_up() {
    a.endpoint->go_up();
    b.endpoint->go_up();
    a_memory = a.endpoint->import_key(b.region->key());
    b_memory = b.endpoint->import_key(a.region->key());
    settle();
    take(a);
    take(b);
    a.seen.clear();
    b.seen.clear();
  }

  static void take(Side& side) {
    std::array<Completion, 16> entries;
    while (const std::size_t count = side.queue.poll(entries.data(), entries.size())) {
      side.seen.insert(side.seen.end(), entries.begin(),
                       entries.begin() + static_cast<std::ptrdiff_t>(count));
    }
  }
  // Only what arrives drives.
  void deliver_all() const {
    bool moved = true;
    while (moved) {
      moved = b.endpoint->deliver();
      moved = a.endpoint->deliver() || moved;
    }
  }
  // Moves everything until nothing moves any more.
  void settle() {
    bool moved = true;
    while (moved) {
      moved = false;
      a.endpoint->resume();
      b.endpoint->resume();
      while (a.endpoint->deliver()) moved = true;
      while (b.endpoint->deliver()) moved = true;
      take(a);
      take(b);
    }
  }
  [[nodiscard]] RemoteSegment at_b(std::uint64_t offset) const { return {a_memory.token, offset}; }
  [[nodiscard]] RemoteSegment at_a(std::uint64_t offset) const { return {b_memory.token, offset}; }

  Side a;
  Side b;
  provider::Endpoint::Imported a_memory;  // b's memory as a sees it
  provider::Endpoint::Imported b_memory;

 private:
  static void establish(Side& side, Side& other, bool initiator) {
    provider::PeerParameters peer;
    peer.protocol = 1;
    const auto blob = other.endpoint->blob({});
    peer.blob = blob;
    peer.limits = side.endpoint->limits();
    const Limits others = other.endpoint->limits();
    peer.limits.send_depth = std::min(peer.limits.send_depth, others.send_depth);
    peer.limits.receive_depth = std::min(peer.limits.receive_depth, others.receive_depth);
    peer.initiator = initiator;
    if (!side.endpoint->establish(peer)) std::abort();
  }
};

}  // namespace weft::engine::test
