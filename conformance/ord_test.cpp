// ORD: order.
#include <algorithm>
#include <random>
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

constexpr std::size_t largest = 200'000;
constexpr std::size_t average_size = 11'000;  // of mixed_sizes
constexpr std::size_t window = 32;

// The same list on both sides: mostly small messages, with large ones and zero lengths between them.
std::vector<std::size_t> mixed_sizes(std::uint64_t seed, std::size_t count) {
  std::mt19937_64 random(seed);
  std::vector<std::size_t> sizes(count);
  for (std::size_t& size : sizes) {
    switch (random() % 16) {
      case 0:
        size = random() % largest;
        break;
      case 1:
        size = 65'534 + random() % 5;
        break;
      case 2:
        size = 0;
        break;
      case 3:
      case 4:
        size = 1000 + random() % 8000;
        break;
      default:
        size = random() % 200;
        break;
    }
  }
  return sizes;
}

void receives_in_order(Test& test, Channel& control) {
  const auto count = control.receive_value<std::size_t>();
  const auto sizes = mixed_sizes(test.seed(), count);
  const GuardedBuffer buffer(window * largest);
  weft::MemoryRegion region;
  std::size_t posted = 0;
  const auto slot = [&](std::size_t i) { return (i % window) * largest; };
  const auto post = [&](weft::Endpoint& endpoint) {
    REQUIRE_EQ(endpoint.receive(region.slice(slot(posted), largest), posted), Status::ok);
    ++posted;
  };
  SideOptions options;
  options.prepared = [&](weft::Context& context, weft::Endpoint& endpoint) {
    region = context.register_memory(buffer.bytes(), Access::local_write);
    const std::size_t at_first = std::min<std::size_t>(window, endpoint.limits().receive_depth);
    while (posted < at_first) post(endpoint);
  };
  Side side = accept_side(test, control, options);
  for (std::size_t i = 0; i < count; ++i) {
    const Completion received = side.completions.next();
    REQUIRE_EQ(received.operation, Operation::receive);
    REQUIRE_EQ(received.status, Status::ok);
    REQUIRE_EQ(received.context, i);
    REQUIRE_EQ(received.bytes, sizes[i]) << "message " << i;
    REQUIRE_EQ(pattern_difference(buffer.bytes(slot(i), sizes[i]), test.seed() + i), "") << "message " << i;
    if (posted < count) post(side.endpoint);
  }
  control.barrier(60s);
}

void sends_in_order(Test& test, std::size_t count) {
  Peer peer = test.start_peer(receives_in_order);
  peer.control().send_value(count);
  Side side = connect_side(test, peer.control());
  const auto sizes = mixed_sizes(test.seed(), count);
  const GuardedBuffer buffer(window * largest);
  weft::MemoryRegion region = side.region(buffer, Access::none);
  const std::uint32_t most_inline = side.endpoint.limits().max_inline;
  std::mt19937_64 random(test.seed() + 1);
  std::vector<std::uint64_t> signalled;
  for (std::size_t i = 0; i < count; ++i) {
    // The slot is free again when a signalled operation behind its last use is complete (CMP-4).
    const bool quiet = random() % 3 == 0 && i % window != window - 1;
    if (i % window == 0 && i > 0) {
      for (const std::uint64_t context : signalled) {
        const Completion sent = side.completions.next();
        REQUIRE_EQ(sent.operation, Operation::send);
        REQUIRE_EQ(sent.status, Status::ok);
        REQUIRE_EQ(sent.context, context) << "send completions come in posting order";
      }
      signalled.clear();
    }
    const std::size_t at = (i % window) * largest;
    fill_pattern(buffer.bytes(at, sizes[i]), test.seed() + i);
    const bool inlined = sizes[i] <= most_inline && random() % 2 == 0;
    const Segment segment =
        inlined ? Segment::inline_bytes(buffer.data() + at, sizes[i]) : region.slice(at, sizes[i]);
    Flags flags = quiet ? Flags::unsignalled : Flags::none;
    if (inlined) flags |= Flags::inline_data;
    REQUIRE_EQ(post_when_possible(side.completions, [&] { return side.endpoint.send(segment, i, flags); }),
               Status::ok);
    if (!quiet) signalled.push_back(i);
  }
  for (const std::uint64_t context : signalled) CHECK_EQ(side.completions.next().context, context);
  CHECK_EQ(list(side.completions.all_within(10ms)), "(none)");
  peer.control().barrier(60s);
  peer.finish();
}

CONFORMANCE_TEST(ORD, 1, messages_arrive_in_posting_order_whatever_their_size, with_peer) {
  sends_in_order(test, test.rounds(3000, average_size));
}

CONFORMANCE_TEST(ORD, 1, many_messages_arrive_in_posting_order, with_peer.full().within(120s)) {
  sends_in_order(test, test.rounds(40'000, average_size));
}

constexpr std::size_t write_size = 3000;
constexpr std::size_t writes_per_round = 12;
constexpr std::uint64_t wanted_rounds = 300;
std::uint64_t rounds_of(const Test& test) {
  return test.rounds(wanted_rounds, writes_per_round * write_size);
}

void sees_all_writes_with_the_message(Test& test, Channel& control) {
  Side side = accept_side(test, control);
  const GuardedBuffer memory(writes_per_round * write_size);
  weft::MemoryRegion region = side.region(memory, Access::remote_write);
  const GuardedBuffer message(8);
  weft::MemoryRegion message_region = side.region(message);
  give_key(control, region);
  for (std::uint64_t round = 0, all = rounds_of(test); round < all; ++round) {
    REQUIRE_EQ(side.endpoint.receive(message_region.whole(), 1), Status::ok);
    const Completion received = side.completions.next();
    // At this very moment, without any other call.
    REQUIRE_EQ(memory.difference(test.seed() + round), "") << "round " << round;
    REQUIRE_EQ(received.status, Status::ok);
    memory.poison();
    // Only now may the next writes come.
    REQUIRE_EQ(side.endpoint.send(Segment{}, 2), Status::ok);
    CHECK_EQ(side.completions.next().operation, Operation::send);
  }
  control.barrier();
}

CONFORMANCE_TEST(ORD, 2, a_receive_shows_all_writes_posted_before_its_send, with_peer) {
  Peer peer = test.start_peer(sees_all_writes_with_the_message);
  Side side = connect_side(test, peer.control());
  const weft::RemoteMemory remote = side.take_key(peer.control());
  const GuardedBuffer local(writes_per_round * write_size);
  weft::MemoryRegion region = side.region(local);
  for (std::uint64_t round = 0, all = rounds_of(test); round < all; ++round) {
    local.fill(test.seed() + round);
    REQUIRE_EQ(side.endpoint.receive(Segment{}, 3), Status::ok);
    for (std::size_t i = 0; i < writes_per_round; ++i) {
      const bool last = i + 1 == writes_per_round;
      const Segment piece = region.slice(i * write_size, write_size);
      // Every other round the last write itself takes the receive.
      const auto post = [&] {
        return last && round % 2 != 0
                   ? side.endpoint.write_with_immediate(piece, remote.at(i * write_size), 5, 4,
                                                        Flags::unsignalled)
                   : side.endpoint.write(piece, remote.at(i * write_size), 4, Flags::unsignalled);
      };
      REQUIRE_EQ(post_when_possible(side.completions, post), Status::ok);
    }
    const auto send = [&] { return side.endpoint.send(Segment{}, 5, Flags::unsignalled); };
    if (round % 2 == 0) REQUIRE_EQ(post_when_possible(side.completions, send), Status::ok);
    CHECK_EQ(side.completions.next().operation, Operation::receive);
  }
  peer.control().barrier();
  peer.finish();
}

CONFORMANCE_TEST(ORD, 3, send_side_completions_come_in_posting_order, with_peer) {
  constexpr std::size_t count = 1000;
  Peer peer = test.start_peer([](Test& t, Channel& control) {
    Side side = accept_side(t, control);
    const GuardedBuffer memory(65536);
    weft::MemoryRegion region = side.region(memory, Access::remote_read | Access::remote_write);
    const GuardedBuffer messages(65536);
    weft::MemoryRegion message_region = side.region(messages);
    give_key(control, region);
    const auto receives = control.receive_value<std::size_t>();
    for (std::size_t i = 0; i < receives; ++i) {
      REQUIRE_EQ(post_when_possible(side.completions,
                                    [&] { return side.endpoint.receive(message_region.whole(), i); }),
                 Status::ok);
    }
    for (std::size_t i = 0; i < receives; ++i)
      CHECK_EQ(side.completions.next_of(Operation::receive).context, i);
    control.barrier();
  });
  Side side = connect_side(test, peer.control());
  const weft::RemoteMemory remote = side.take_key(peer.control());
  const GuardedBuffer local(65536);
  weft::MemoryRegion region = side.region(local);
  std::mt19937_64 random(test.seed());
  std::vector<Operation> operations(count);
  std::size_t receives = 0;
  for (Operation& operation : operations) {
    constexpr Operation kinds[] = {Operation::send, Operation::write, Operation::write_with_immediate,
                                   Operation::read, Operation::flush};
    operation = kinds[random() % std::size(kinds)];
    if (operation == Operation::send || operation == Operation::write_with_immediate) ++receives;
  }
  peer.control().send_value(receives);
  for (std::size_t i = 0; i < count; ++i) {
    const Segment segment = region.slice(0, random() % 8 == 0 ? 1 + random() % 65536 : random() % 300);
    REQUIRE_EQ(post_when_possible(side.completions,
                                  [&] {
                                    switch (operations[i]) {
                                      case Operation::send:
                                        return side.endpoint.send(segment, i);
                                      case Operation::write:
                                        return side.endpoint.write(segment, remote.at(0), i);
                                      case Operation::write_with_immediate:
                                        return side.endpoint.write_with_immediate(segment, remote.at(0), 5,
                                                                                  i);
                                      case Operation::read:
                                        return side.endpoint.read(segment, remote.at(0), i);
                                      default:
                                        return side.endpoint.flush(i);
                                    }
                                  }),
               Status::ok);
  }
  for (std::size_t i = 0; i < count; ++i) {
    const Completion completion = side.completions.next();
    REQUIRE_EQ(completion.context, i)
        << "after " << i << " in order: " << weft::to_string(completion.operation);
    REQUIRE_EQ(completion.operation, operations[i]);
    REQUIRE_EQ(completion.status, Status::ok);
  }
  peer.control().barrier();
  peer.finish();
}

CONFORMANCE_TEST(ORD, 4, a_fenced_operation_sees_all_earlier_ones, alone) {
  Loop loop = make_loop(test);
  constexpr std::size_t size = 100'000;
  const GuardedBuffer memory(size);
  const GuardedBuffer local(size);
  const GuardedBuffer result(size);
  weft::MemoryRegion memory_region = loop.region(memory, Access::remote_read | Access::remote_write);
  weft::MemoryRegion local_region = loop.region(local);
  weft::MemoryRegion result_region = loop.region(result);
  const weft::RemoteMemory remote = loop.near_endpoint.import_memory(memory_region.key());
  const auto post = [&](auto&& one) { REQUIRE_EQ(post_when_possible(loop.near, one), Status::ok); };
  for (std::uint64_t round = 0; round < 50; ++round) {
    // Read after write.
    local.fill(test.seed() + round);
    result.poison();
    REQUIRE_EQ(loop.near_endpoint.write(local_region.whole(), remote.at(0), 1), Status::ok);
    post([&] { return loop.near_endpoint.read(result_region.whole(), remote.at(0), 2, Flags::fence); });
    CHECK_EQ(loop.near.next().context, 1);
    CHECK_EQ(loop.near.next().context, 2);
    REQUIRE_EQ(result.difference(test.seed() + round), "") << "round " << round;
    // Write after read: the read must not see what the fenced write puts there.
    result.poison();
    local.fill(~test.seed());
    REQUIRE_EQ(loop.near_endpoint.read(result_region.whole(), remote.at(0), 3), Status::ok);
    post([&] { return loop.near_endpoint.write(local_region.whole(), remote.at(0), 4, Flags::fence); });
    CHECK_EQ(loop.near.next().context, 3);
    CHECK_EQ(loop.near.next().context, 4);
    REQUIRE_EQ(result.difference(test.seed() + round), "") << "round " << round;
  }
}

}  // namespace
}  // namespace conformance
