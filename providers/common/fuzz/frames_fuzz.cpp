// libFuzzer target over the engine's frame parser: whatever a peer sends, no byte outside what it was granted
// changes, nothing crashes, nothing grows (SEC-1). The input is the peer's stream, delivered in pieces, to an
// endpoint with receives posted and operations of its own under way. Run by scripts/check-fuzz.
#include <cstdio>
#include <random>

#include "frames.hpp"
#include "tests/pair.hpp"

namespace weft::engine::test {
namespace {

constexpr std::size_t guard = 4096;
constexpr std::size_t granted = 8192;

// Frames that were looked at: those wholly delivered to an endpoint that then still lived.
std::uint64_t frames = 0;

struct SayCount {
  ~SayCount() { std::fprintf(stderr, "%llu frames looked at\n", static_cast<unsigned long long>(frames)); }
} const say_count;

// Where the frame at `at` ends; the stream's end when it is not whole.
std::size_t end_of_frame(std::span<const std::byte> stream, std::size_t at) {
  const std::size_t left = stream.size() - at;
  const std::size_t header = wire::header_size(static_cast<std::uint8_t>(stream[at]));
  if (header == wire::no_such_type || header > left) return stream.size();
  return at + std::min(left, header + wire::load<wire::Header>(stream.data() + at).length);
}

[[nodiscard]] EngineOptions options_of(bool with_offers) {
  EngineOptions options;
  options.frame_payload = wire::fuzzed_frame_payload;
  if (!with_offers) return options;
  options.offer_from = 512;
  options.fetches_at_once = Offers::most_fetches;
  return options;
}

// Made once: contexts, regions and memory; an endpoint pair is made for each input.
class Bench {
 public:
  explicit Bench(bool with_offers)
      : context_(host_, options_of(with_offers)),
        queue_(context_, 512, queue_events_),
        memory_(guard + granted + guard) {
    const auto all = weft::Access::local_write | weft::Access::remote_read | weft::Access::remote_write |
                     weft::Access::remote_atomic;
    region_ = context_.register_memory({.address = memory_.data() + guard, .length = granted, .access = all});
    const auto key = Key::decode(region_->key());
    if (!key) std::abort();
    key_ = *key;
  }

  void run(const std::uint8_t* data, std::size_t size) {
    const std::uint8_t choice = data[0];
    random_.seed(choice + 1U);
    FakeEvents events;
    provider::EndpointRequest request;
    request.id = 1;
    request.send_queue = &queue_;
    request.receive_queue = &queue_;
    request.send_depth = 32;
    request.receive_depth = 16;
    request.max_inline = 64;
    request.events = &events;
    std::unique_ptr<provider::ReceiveQueue> shared;
    if ((choice & 1) != 0) {
      shared = context_.create_receive_queue(queue_, 16, 0);
      request.shared_receives = shared.get();
    }
    Weather weather;
    // Torn anywhere, in pieces of several frames, or all at once.
    if ((choice & 2) != 0) weather.most_delivered = (choice & 8) != 0 ? 1 + choice / 4U : 600;
    weather.seed = choice;
    StreamEndpoint endpoint(context_, queue_, request, weather);
    endpoint.swallows = (choice & 16) != 0;
    provider::PeerParameters peer;
    std::array<std::byte, EngineBlob::size> blob;
    EngineBlob{std::uint64_t{64} * 1024, (choice & 4) != 0}.encode(blob);
    peer.blob = blob;
    peer.limits = endpoint.limits();
    endpoint.establish(peer);
    endpoint.go_up();
    std::fill(memory_.begin(), memory_.begin() + guard, std::byte{0x3c});
    std::fill(memory_.end() - guard, memory_.end(), std::byte{0x3c});
    post_own_operations(endpoint, shared.get());

    // The peer knows the key, as after an honest exchange.
    std::vector<std::byte> bind(sizeof(wire::Header) + sizeof(wire::BindExtension));
    wire::store(
        wire::store(bind.data(), wire::Header{static_cast<std::uint8_t>(wire::Type::bind), 0, 0, 0, 0}),
        wire::BindExtension{key_.region, {key_.secret.low, key_.secret.high}});
    endpoint.incoming.assign(bind.begin(), bind.end());
    const auto* bytes = reinterpret_cast<const std::byte*>(data + 1);
    endpoint.incoming.insert(endpoint.incoming.end(), bytes, bytes + size - 1);
    deliver(endpoint, shared.get(), events);
    provider::EndOrder order;
    order.cause = events.failures != 0 ? events.failure : Status::aborted;
    endpoint.end(order);
    std::array<Completion, 64> entries;
    while (queue_.poll(entries.data(), entries.size()) != 0) {
    }
    endpoint.silence();
    if (events.failures > 1 || events.finishes != 1) fail("an endpoint failed or finished more than once");
    for (std::size_t i = 0; i < guard; ++i) {
      if (memory_[i] != std::byte{0x3c} || memory_[guard + granted + i] != std::byte{0x3c}) {
        fail("a byte outside the granted region changed");
      }
    }
  }

 private:
  [[noreturn]] static void fail(const char* what) {
    std::fprintf(stderr, "frames_fuzz: %s\n", what);
    std::abort();
  }

  // The stream, with fresh receives for those it used up.
  void deliver(StreamEndpoint& endpoint, provider::ReceiveQueue* shared, const FakeEvents& events) {
    const std::vector<std::byte> stream = endpoint.incoming;
    std::size_t counted = 0;
    std::array<Completion, 64> entries;
    for (bool goes_on = true; goes_on && events.failures == 0;) {
      goes_on = endpoint.deliver();
      // Rarely enough that several are under way; all of them once nothing else comes.
      if (random_() % 4 == 0 || !goes_on) goes_on = endpoint.fetch(random_()) || goes_on;
      const std::size_t delivered = endpoint.incoming.empty() ? stream.size() : endpoint.delivered;
      while (counted < delivered) {
        const std::size_t end = end_of_frame(stream, counted);
        if (end > delivered) break;
        counted = end;
        ++frames;
      }
      const std::size_t count = queue_.poll(entries.data(), entries.size());
      for (std::size_t i = 0; i < count; ++i) {
        if (entries[i].operation == Operation::receive) post_receive(endpoint, shared);
      }
    }
    if (events.failures != 0) ++frames;  // the one at fault
  }

  void post_receive(StreamEndpoint& endpoint, provider::ReceiveQueue* shared) {
    const Segment segment{region_->token(), 1024, 2048};
    const ReceiveRequest receive{1, std::span(&segment, 1)};
    static_cast<void>(shared != nullptr ? shared->post(&receive, 1) : endpoint.post_receives(&receive, 1));
  }

  void post_own_operations(StreamEndpoint& endpoint, provider::ReceiveQueue* shared) {
    const Segment segment{region_->token(), 1024, 2048};
    for (int i = 0; i < 8; ++i) post_receive(endpoint, shared);
    const auto imported = endpoint.import_key(region_->key());
    const Segment word{region_->token(), 0, 8};
    const std::array operations = {Operation::read, Operation::fetch_add, Operation::write,
                                   Operation::send, Operation::flush,     Operation::read};
    for (const Operation operation : operations) {
      WorkRequest request;
      request.operation = operation;
      const Segment& local = operation == Operation::fetch_add ? word : segment;
      if (operation != Operation::flush) request.segments = std::span(&local, 1);
      request.remote = {imported.token, 512};
      static_cast<void>(endpoint.post(&request, 1));
    }
  }

  FakeHost host_;
  FakeQueueEvents queue_events_;
  PlainContext context_;
  PlainQueue queue_;
  std::vector<std::byte> memory_;
  std::unique_ptr<provider::MemoryRegion> region_;
  Key key_;
  std::minstd_rand random_;
};

}  // namespace
}  // namespace weft::engine::test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static weft::engine::test::Bench plain(false);
  static weft::engine::test::Bench with_offers(true);
  if (size == 0) return 0;
  ((data[0] & weft::engine::wire::fuzzed_with_offers) != 0 ? with_offers : plain).run(data, size);
  return 0;
}
