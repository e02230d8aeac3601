// libFuzzer target over the engine's frame parser: whatever a peer sends, no byte outside what it was granted
// changes, nothing crashes, nothing grows (SEC-1). The input is the peer's stream, delivered in pieces, to an
// endpoint with receives posted and operations of its own under way. Run by scripts/check-fuzz.
#include <cstdio>

#include "tests/pair.hpp"

namespace weft::engine::test {
namespace {

constexpr std::size_t guard = 4096;
constexpr std::size_t granted = 8192;

// Frames that were looked at, as far as the input is a run of them.
std::uint64_t frames = 0;

struct SayCount {
  ~SayCount() { std::fprintf(stderr, "%llu frames looked at\n", static_cast<unsigned long long>(frames)); }
} const say_count;

void count_frames(const std::byte* bytes, std::size_t size) {
  while (size != 0) {
    const std::size_t header = wire::header_size(static_cast<std::uint8_t>(*bytes));
    ++frames;
    if (header == wire::no_such_type || header > size) return;
    const std::size_t whole = header + wire::load<wire::Header>(bytes).length;
    if (whole > size) return;
    bytes += whole;
    size -= whole;
  }
}

// Made once: contexts, regions and memory; an endpoint pair is made for each input.
class Bench {
 public:
  Bench()
      : context_(host_, EngineOptions{}),
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
    if ((choice & 2) != 0) weather.most_delivered = 1 + choice / 8U;
    weather.seed = choice;
    StreamEndpoint endpoint(context_, queue_, request, weather);
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
    count_frames(bytes, size - 1);
    while (endpoint.deliver()) {
    }
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

  void post_own_operations(StreamEndpoint& endpoint, provider::ReceiveQueue* shared) {
    const Segment segment{region_->token(), 1024, 2048};
    for (std::uint64_t i = 0; i < 8; ++i) {
      const ReceiveRequest receive{i, std::span(&segment, 1)};
      static_cast<void>(shared != nullptr ? shared->post(&receive, 1) : endpoint.post_receives(&receive, 1));
    }
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
};

}  // namespace
}  // namespace weft::engine::test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static weft::engine::test::Bench bench;
  if (size != 0) bench.run(data, size);
  return 0;
}
