// Two sides of engine endpoints in one thread over a message fabric in memory, which reorders, holds back,
// repeats, refuses and fails at will (by seed): the message family without any fabric.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <deque>
#include <span>

#include "message_context.hpp"
#include "message_endpoint.hpp"
#include "pair.hpp"

namespace weft::engine::test {

struct FabricWeather {
  unsigned most_delivered = 1000;  // by one step, random up to this
  unsigned reach = 1;              // a message may overtake so many others, less one
  double repeats = 0;              // share of messages that come twice
  double refuses = 0;              // share of submissions that find no room
  double later = 0;                // share of buffers that are given back later
  bool doorbell = false;           // no descriptor of its own
  bool lingers = false;            // and what it has taken may wait for calls, or come after a ring
  bool takes_small = false;        // small messages within the call, from wherever they lie
  bool pulls = false;              // the target can fetch payload
  double pulls_later = 0;          // share of fetches that end later
  bool mixes_fetches = false;      // in any order
  bool mute_paths = false;         // it has one, which tells nothing of what these endpoints' peers send
  std::uint64_t seed = 1;
};

class FakeFabricContext final : public MessageContext {
 public:
  FakeFabricContext(provider::Host& host, const provider::OpenRequest& request, const EngineOptions& options,
                    const MessageOptions& message_options)
      : MessageContext(host, request, options, message_options) {}
  [[nodiscard]] const Attributes& attributes() const noexcept override { return attributes_; }
  [[nodiscard]] ProtocolRange protocol() const noexcept override { return {}; }
  [[nodiscard]] std::unique_ptr<provider::CompletionQueue> create_completion_queue(
      std::uint32_t, provider::QueueEvents&) override {
    return nullptr;
  }
  [[nodiscard]] std::unique_ptr<provider::Endpoint> prepare_endpoint(
      const provider::EndpointRequest&) override {
    return nullptr;
  }

 private:
  Attributes attributes_;
};

class FakeFabricEndpoint;

class FakeFabricQueue final : public MessageQueue {
 public:
  // A fetch under way.
  struct Fetch {
    FakeFabricEndpoint* endpoint;
    std::uint64_t number;
    const std::byte* from;
    std::byte* to;
    std::uint64_t length;
  };

  FakeFabricQueue(FakeFabricContext& context, std::uint32_t capacity, provider::QueueEvents& events,
                  const FabricWeather& weather)
      : MessageQueue(context, capacity, events), weather_(weather), random_(weather.seed) {
    if (weather.lingers) let_messages_linger();
    if (!weather.doorbell) watch_fabric(descriptor_);
    context.look_after(*this);
  }
  ~FakeFabricQueue() override {
    leave_helper_alone();
    for (SendBuffer* buffer : later_) sent(*buffer);
    ::close(descriptor_);
  }

  [[nodiscard]] bool chance(double share) {
    return share > 0 && std::uniform_real_distribution<double>(0, 1)(random_) < share;
  }
  void put(std::span<const std::byte> bytes) {
    inbox.emplace_back(bytes.begin(), bytes.end());
    if (weather_.reach > 1) {
      const std::size_t overtakes = std::uniform_int_distribution<std::size_t>(
          0, std::min<std::size_t>(weather_.reach, inbox.size()) - 1)(random_);
      for (std::size_t i = 0; i < overtakes; ++i) {
        std::swap(inbox[inbox.size() - 1 - i], inbox[inbox.size() - 2 - i]);
      }
    }
    if (chance(weather_.repeats)) inbox.push_back(inbox.back());
  }
  // The fabric's descriptor tells of something.
  void announce() const {
    const std::uint64_t one = 1;
    ASSERT_EQ(::write(descriptor_, &one, sizeof one), static_cast<ssize_t>(sizeof one));
  }
  // From here on no set takes the fabric's descriptor: it is one of a file.
  void make_unwatchable() const {
    const int file = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    ASSERT_GE(::dup3(file, descriptor_, O_CLOEXEC), 0);
    ::close(file);
  }
  void keep_for_later(SendBuffer& buffer) { later_.push_back(&buffer); }
  // Every buffer under way fails.
  void fail_all(std::int32_t code) {
    const Entry entry(gate());
    for (SendBuffer* buffer : std::exchange(later_, {})) send_failed(*buffer, code, "the fabric gave up");
  }
  [[nodiscard]] const FabricWeather& weather() const { return weather_; }
  [[nodiscard]] std::uint64_t buffers_under_way() { return buffers().under_way(); }
  [[nodiscard]] std::uint64_t buffers_free() { return buffers().free_count(); }

  void fetch_later(const Fetch& fetch) { fetches_.push_back(fetch); }
  void forget_fetch(const FakeFabricEndpoint& endpoint) {
    std::erase_if(fetches_, [&](const Fetch& fetch) { return fetch.endpoint == &endpoint; });
  }
  [[nodiscard]] std::size_t fetches_under_way() const { return fetches_.size(); }
  void fail_fetches(std::int32_t code);
  // Of those under way, counted from the oldest; outside of the queue's own calls.
  void end_one_fetch(std::size_t which, bool copies = true) {
    const Entry entry(gate());
    end_fetch(which, copies);
  }

  std::deque<std::vector<std::byte>> inbox;
  bool gives_back = true;
  bool ends_fetches = true;

 protected:
  bool progress() noexcept override {
    bool any = false;
    if (gives_back) {
      for (SendBuffer* buffer : std::exchange(later_, {})) {
        sent(*buffer);
        any = true;
      }
    }
    any = end_fetches() || any;
    const unsigned most = std::uniform_int_distribution<unsigned>(1, weather_.most_delivered)(random_);
    for (unsigned i = 0; i < most && !inbox.empty(); ++i) {
      const std::vector<std::byte> bytes = std::move(inbox.front());
      inbox.pop_front();
      message_arrived(bytes.data(), bytes.size());
      any = true;
    }
    return any;
  }
  [[nodiscard]] bool arm_fabric() noexcept override {
    return inbox.empty() && later_.empty() && (fetches_.empty() || !ends_fetches);
  }

 private:
  bool end_fetches();
  void end_fetch(std::size_t which, bool copies = true);

  const FabricWeather weather_;
  std::mt19937_64 random_;
  std::vector<SendBuffer*> later_;
  std::vector<Fetch> fetches_;
  int descriptor_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
};

class FakeFabricEndpoint final : public MessageEndpoint {
 public:
  FakeFabricEndpoint(FakeFabricContext& context, FakeFabricQueue& queue,
                     const provider::EndpointRequest& request)
      : MessageEndpoint(context, queue, request), own_(queue) {}

  bool path_is_broken = false;
  bool cannot_offer = false;
  bool refuses_pulls = false;
  bool refuses_messages = false;
  int fetched_at_once = 0;
  int large_payloads = 0;
  int taken_small = 0;
  int stopped = 0;
  int withdrawn = 0;
  std::uint64_t taken = 0;
  std::uint64_t heard_of_taken = 0;  // times

  void can_pull_now() {
    const HelperEntry entry(queue().gate());
    may_be_offered();
  }

 protected:
  [[nodiscard]] bool can_pull() const noexcept override { return own_.weather().pulls; }
  void large_payload_passes() noexcept override { ++large_payloads; }
  [[nodiscard]] std::size_t offer(const Piece& memory, std::span<std::byte> token) noexcept override {
    if (cannot_offer) return 0;
    wire::store(token.data(), memory.address);
    return sizeof memory.address;
  }
  void offers_taken(std::uint64_t count) noexcept override {
    taken = count;
    ++heard_of_taken;
  }
  void withdraw_offers() noexcept override { ++withdrawn; }
  [[nodiscard]] Submitted pull(std::uint64_t number, std::span<const std::byte> token, std::uint64_t offset,
                               std::byte* to, std::uint64_t length,
                               std::int32_t& native_code) noexcept override {
    if (path_is_broken || token.size() != sizeof to) {
      native_code = -107;
      return Submitted::broken;
    }
    if (refuses_pulls || own_.chance(own_.weather().refuses)) return Submitted::no_room;
    const std::byte* const from = wire::load<std::byte*>(token.data()) + offset;
    if (own_.chance(own_.weather().pulls_later)) {
      own_.fetch_later({this, number, from, to, length});
      return Submitted::under_way;
    }
    std::memcpy(to, from, length);
    ++fetched_at_once;
    return Submitted::done;
  }
  void stop_pull() noexcept override {
    own_.forget_fetch(*this);
    ++stopped;
  }
  [[nodiscard]] std::vector<std::byte> fabric_blob(const provider::PathAddresses&) override {
    std::vector<std::byte> bytes(sizeof(void*));
    FakeFabricQueue* self = &own_;
    std::memcpy(bytes.data(), &self, sizeof self);
    return bytes;
  }
  bool connect_fabric(std::span<const std::byte> blob, const provider::PeerParameters&) override {
    if (blob.size() != sizeof peer_) throw Error(Status::protocol, "not an address of this fabric");
    std::memcpy(&peer_, blob.data(), sizeof peer_);
    if (own_.weather().mute_paths) ring_for_sleepers();
    return true;
  }
  [[nodiscard]] Submitted submit(SendBuffer& buffer, std::int32_t& native_code) noexcept override {
    if (path_is_broken) {
      native_code = -107;
      return Submitted::broken;
    }
    if (refuses_messages || own_.chance(own_.weather().refuses)) return Submitted::no_room;
    peer_->put(std::span(buffer.bytes, buffer.length));
    if (!buffer.confirmed && !own_.chance(own_.weather().later)) return Submitted::done;
    own_.keep_for_later(buffer);
    return Submitted::under_way;
  }
  [[nodiscard]] Submitted submit_small(const message::Header& header, const iovec& bytes,
                                       std::int32_t& native_code) noexcept override {
    if (!own_.weather().takes_small) return Submitted::no_room;
    EXPECT_LE(sizeof header + bytes.iov_len, own_.message_context().message_options().small_message);
    EXPECT_EQ(own_.buffers_under_way(), 0U) << "it may overtake";
    if (path_is_broken) {
      native_code = -107;
      return Submitted::broken;
    }
    if (refuses_messages || own_.chance(own_.weather().refuses)) return Submitted::no_room;
    std::vector<std::byte> message(sizeof header + bytes.iov_len);
    wire::store(message.data(), header);
    if (bytes.iov_len != 0) std::memcpy(message.data() + sizeof header, bytes.iov_base, bytes.iov_len);
    peer_->put(message);
    ++taken_small;
    return Submitted::done;
  }

 private:
  FakeFabricQueue& own_;
  FakeFabricQueue* peer_ = nullptr;
};

inline bool FakeFabricQueue::end_fetches() {
  if (!ends_fetches || fetches_.empty()) return false;
  const std::size_t which = weather_.mixes_fetches
                                ? std::uniform_int_distribution<std::size_t>(0, fetches_.size() - 1)(random_)
                                : 0;
  end_fetch(which);
  return true;
}

inline void FakeFabricQueue::end_fetch(std::size_t which, bool copies) {
  const Fetch fetch = fetches_[which];
  fetches_.erase(fetches_.begin() + static_cast<std::ptrdiff_t>(which));
  if (copies) std::memcpy(fetch.to, fetch.from, fetch.length);
  pulled(*fetch.endpoint, fetch.number, fetch.length);
}

inline void FakeFabricQueue::fail_fetches(std::int32_t code) {
  const Entry entry(gate());
  for (const Fetch& fetch : std::exchange(fetches_, {}))
    pull_failed(*fetch.endpoint, code, "the fabric gave up");
}

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
