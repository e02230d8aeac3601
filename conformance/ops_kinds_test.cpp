// OPS-6, OPS-7 and OPS-11 for each kind of operation.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "harness/side.hpp"

namespace conformance {
namespace {

using weft::Access;
using weft::Completion;
using weft::Flags;
using weft::Operation;
using weft::Segment;
using weft::Status;
using weft::WorkRequest;

CONFORMANCE_TEST(OPS, 6, every_operation_may_be_inline_whatever_was_wished_for, alone) {
  for (const std::uint32_t wished : {0U, 1U, 40U}) {
    SideOptions options;
    options.endpoint.max_inline = wished;
    Loop loop = make_loop(test, options);
    const std::uint32_t most = loop.near_endpoint.limits().max_inline;
    CHECK_GE(most, 32) << "wished for " << wished;
    const GuardedBuffer source(most + 1);
    const GuardedBuffer target(most);
    weft::MemoryRegion target_region = loop.region(target, Access::local_write | Access::remote_write);
    const weft::RemoteMemory remote = loop.near_endpoint.import_memory(target_region.key());
    for (const Flags more : {Flags::none, Flags::unsignalled}) {
      for (const Operation operation : {Operation::send, Operation::write, Operation::write_with_immediate}) {
        const bool takes_receive = operation != Operation::write;
        Segment segment = Segment::inline_bytes(source.data(), most);
        WorkRequest request;
        request.operation = operation;
        request.flags = Flags::inline_data | more;
        if (operation == Operation::send) request.flags |= Flags::with_immediate;
        request.immediate = 0x80000001;
        request.segments = std::span(&segment, 1);
        request.remote = remote.at(0);
        target.poison();
        fill_pattern(source.bytes(0, most), test.seed() + wished);
        if (takes_receive) REQUIRE_EQ(loop.far_endpoint.receive(target_region.whole(), 1), Status::ok);
        REQUIRE_EQ(post_when_possible(loop.near, [&] { return loop.near_endpoint.post(request); }),
                   Status::ok)
            << weft::to_string(operation);
        source.poison();
        REQUIRE_EQ(post_when_possible(loop.near, [&] { return loop.near_endpoint.flush(2); }), Status::ok);
        CHECK_EQ(loop.near.next_of(Operation::flush).status, Status::ok);
        if (takes_receive) {
          const Completion received = loop.far.next();
          CHECK_EQ(received.bytes, most);
          CHECK(received.has_immediate) << weft::to_string(operation);
          CHECK_EQ(received.immediate, 0x80000001U);
        }
        CHECK_EQ(target.difference(test.seed() + wished), "") << weft::to_string(operation);
        segment = Segment::inline_bytes(source.data(), most + 1);
        CHECK_EQ(loop.near_endpoint.post(request), Status::too_big) << weft::to_string(operation);
      }
    }
  }
}

CONFORMANCE_TEST(OPS, 11, flush_stands_for_large_writes_and_for_atomics, alone) {
  Loop loop = make_loop(test);
  constexpr std::size_t size = 100'000;
  const GuardedBuffer memory(size);
  const GuardedBuffer local(size);
  weft::MemoryRegion memory_region = loop.region(memory, Access::remote_write | Access::remote_atomic);
  weft::MemoryRegion region = loop.region(local);
  const weft::RemoteMemory remote = loop.near_endpoint.import_memory(memory_region.key());
  const auto post = [&](auto&& one) { REQUIRE_EQ(post_when_possible(loop.near, one), Status::ok); };
  const auto flush = [&] {
    post([&] { return loop.near_endpoint.flush(2); });
    CHECK_EQ(loop.near.next().context, 2);
  };
  for (std::uint64_t round = 0; round < 30; ++round) {
    memory.poison();
    local.fill(test.seed() + round);
    post([&] { return loop.near_endpoint.write(region.whole(), remote.at(0), 1, Flags::unsignalled); });
    flush();
    REQUIRE_EQ(memory.difference(test.seed() + round), "") << "round " << round;
    memory.at<std::uint64_t>(0) = round;
    post([&] {
      return loop.near_endpoint.fetch_add(region.slice(0, 8), remote.at(0), 5, 1, Flags::unsignalled);
    });
    flush();
    REQUIRE_EQ(memory.at<std::uint64_t>(0), round + 5);
  }
}

// Four places of memory, each a region of its own, and the third of them empty.
struct Pieces {
  static constexpr std::array<std::size_t, 4> sizes{300, 20, 0, 5000};
  static constexpr std::size_t size = 300 + 20 + 5000;
  std::vector<GuardedBuffer> buffers;
  std::vector<weft::MemoryRegion> regions;
  std::vector<Segment> segments;

  explicit Pieces(weft::Context& context) {
    for (const std::size_t one : sizes) {
      buffers.emplace_back(std::max<std::size_t>(one, 8));
      buffers.back().poison();
      regions.push_back(context.register_memory(buffers.back().bytes(), Access::local_write));
      segments.push_back(regions.back().slice(0, one));
    }
  }
  void fill(std::uint64_t seed) const {
    std::uint64_t at = 0;
    for (std::size_t i = 0; i < sizes.size(); at += sizes[i++])
      fill_pattern(buffers[i].bytes(0, sizes[i]), seed, at);
  }
  [[nodiscard]] std::string difference(std::uint64_t seed) const {
    std::uint64_t at = 0;
    for (std::size_t i = 0; i < sizes.size(); at += sizes[i++]) {
      const std::string found = pattern_difference(buffers[i].bytes(0, sizes[i]), seed, at);
      if (!found.empty()) return "piece " + std::to_string(i) + ": " + found;
    }
    return buffers[2].touched();
  }
};

CONFORMANCE_TEST(OPS, 7, segments_of_several_regions_and_empty_ones, alone) {
  Loop loop = make_loop(test);
  const GuardedBuffer memory(Pieces::size);
  weft::MemoryRegion region = loop.region(memory, Access::remote_read | Access::remote_write);
  const weft::RemoteMemory remote = loop.near_endpoint.import_memory(region.key());
  const Pieces from(loop.context);
  from.fill(test.seed());
  const auto post = [&](Operation operation, const Pieces& pieces) {
    WorkRequest request;
    request.operation = operation;
    request.segments = pieces.segments;
    request.remote = remote.at(0);
    REQUIRE_EQ(loop.near_endpoint.post(request), Status::ok) << weft::to_string(operation);
    const Completion done = loop.near.next();
    CHECK_EQ(done.status, Status::ok) << weft::to_string(operation);
    CHECK_EQ(done.bytes, Pieces::size) << weft::to_string(operation);
  };
  const auto flush = [&] {
    REQUIRE_EQ(loop.near_endpoint.flush(1), Status::ok);
    CHECK_EQ(loop.near.next().status, Status::ok);
  };
  const Pieces into(loop.context);
  const weft::ReceiveRequest receive{.segments = into.segments};
  REQUIRE_EQ(loop.far_endpoint.post_receives(std::span(&receive, 1)).status, Status::ok);
  post(Operation::send, from);
  CHECK_EQ(loop.far.next().bytes, Pieces::size);
  CHECK_EQ(into.difference(test.seed()), "");
  memory.poison();
  post(Operation::write, from);
  flush();
  CHECK_EQ(memory.difference(test.seed()), "");
  memory.poison();
  REQUIRE_EQ(loop.far_endpoint.receive(Segment{}, 1), Status::ok);
  post(Operation::write_with_immediate, from);
  CHECK_EQ(loop.far.next().bytes, Pieces::size);
  CHECK_EQ(memory.difference(test.seed()), "");
  const Pieces back(loop.context);
  post(Operation::read, back);
  CHECK_EQ(back.difference(test.seed()), "");
}

CONFORMANCE_TEST(OPS, 7, receives_of_a_shared_queue_scatter_too, alone) {
  weft::Context context = test.open_context();
  Completions near(context.create_completion_queue());
  Completions far(context.create_completion_queue());
  weft::ReceiveQueueOptions queue_options;
  queue_options.queue = far.queue();
  queue_options.depth = 4;
  const Pieces from(context);
  const Pieces into(context);
  weft::ReceiveQueue shared = context.create_receive_queue(queue_options);
  weft::ListenOptions listen;
  listen.queue = far.queue();
  weft::Listener listener = context.listen(host_of(context) + ":0", listen);
  weft::EndpointOptions options;
  options.queue = near.queue();
  weft::Endpoint near_endpoint = context.connect(listener.address(), options);
  options = {};
  options.send_completions = far.queue();
  options.shared_receives = shared;
  weft::Endpoint far_endpoint = next_request(far, listener).accept(options);
  near_endpoint.wait_up(patience);
  far_endpoint.wait_up(patience);
  from.fill(test.seed());
  const weft::ReceiveRequest receive{.segments = into.segments};
  REQUIRE_EQ(shared.post_receives(std::span(&receive, 1)).status, Status::ok);
  WorkRequest send;
  send.segments = from.segments;
  REQUIRE_EQ(near_endpoint.post(send), Status::ok);
  CHECK_EQ(far.next_of(Operation::receive).bytes, Pieces::size);
  CHECK_EQ(into.difference(test.seed()), "");
  CHECK_EQ(near.next_of(Operation::send).status, Status::ok);
}

}  // namespace
}  // namespace conformance
