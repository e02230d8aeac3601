// OPS over wires of several MTUs, and over one whose MTU shrinks under way: sizes around what one packet
// takes.
#include <string>
#include <vector>

#include "harness/network.hpp"
#include "harness/side.hpp"

namespace conformance {
namespace {

using weft::Access;
using weft::Completion;
using weft::Operation;
using weft::Status;

constexpr std::size_t most = 1 << 20;  // the largest message that is promised

std::vector<std::size_t> sizes_around(std::size_t mtu) {
  std::vector<std::size_t> sizes = {1, mtu / 2, 4 * mtu - 1, 4 * mtu + 1, 65'536, most};
  // Headers of the protocols beneath and of the provider's own take their part of a packet.
  for (std::size_t size = mtu - 120; size <= mtu + 1; size += 11) sizes.push_back(size);
  return sizes;
}

// By one connection: a message there and back, a write with immediate, a read, and an atomic of each size.
void serve(Test& test, Channel& control, weft::Context& context, Completions& completions,
           weft::Endpoint& endpoint, std::size_t mtu) {
  const GuardedBuffer buffer(most);
  const GuardedBuffer memory(most);
  const GuardedBuffer counter(8);
  counter.at<std::uint64_t>(0) = 0;
  weft::MemoryRegion region = context.register_memory(buffer.bytes(), Access::local_write);
  weft::MemoryRegion target =
      context.register_memory(memory.bytes(), Access::remote_read | Access::remote_write);
  weft::MemoryRegion counted = context.register_memory(counter.bytes(), Access::remote_atomic);
  give_key(control, target);
  give_key(control, counted);
  std::uint64_t seed = test.seed();
  for (const std::size_t size : sizes_around(mtu)) {
    ++seed;
    REQUIRE_EQ(post_when_possible(completions, [&] { return endpoint.receive(region.slice(0, size), 1); }),
               Status::ok);
    REQUIRE_EQ(post_when_possible(completions, [&] { return endpoint.receive({}, 2); }), Status::ok);
    const Completion message = completions.next_of(Operation::receive);
    REQUIRE_EQ(message.status, Status::ok);
    CHECK_EQ(message.bytes, size);
    CHECK_EQ(pattern_difference(buffer.bytes(0, size), seed), "") << "a message of " << size << " bytes";
    REQUIRE_EQ(post_when_possible(completions, [&] { return endpoint.send(region.slice(0, size), 3); }),
               Status::ok);
    const Completion written = completions.next_of(Operation::receive);
    REQUIRE_EQ(written.status, Status::ok);
    CHECK_EQ(written.bytes, size);
    CHECK_EQ(written.immediate, size);
    CHECK_EQ(pattern_difference(memory.bytes(0, size), ~seed), "") << "a write of " << size << " bytes";
    REQUIRE_EQ(completions.next_of(Operation::send).status, Status::ok);
  }
  control.barrier();
  CHECK_EQ(counter.at<std::uint64_t>(0), sizes_around(mtu).size());
}

void work(const Test& test, Channel& control, Side& side, std::size_t mtu) {
  const GuardedBuffer out(most);
  const GuardedBuffer in(most);
  const GuardedBuffer found(8);
  weft::MemoryRegion out_region = side.region(out);
  weft::MemoryRegion in_region = side.region(in);
  weft::MemoryRegion found_region = side.region(found);
  const weft::RemoteMemory target = side.take_key(control);
  const weft::RemoteMemory counted = side.take_key(control);
  std::uint64_t seed = test.seed();
  std::uint64_t count = 0;
  for (const std::size_t size : sizes_around(mtu)) {
    ++seed;
    fill_pattern(out.bytes(0, size), seed);
    in.poison(0, size);
    REQUIRE_EQ(post_when_possible(side.completions,
                                  [&] { return side.endpoint.receive(in_region.slice(0, size), 1); }),
               Status::ok);
    REQUIRE_EQ(post_when_possible(side.completions,
                                  [&] { return side.endpoint.send(out_region.slice(0, size), 2); }),
               Status::ok);
    REQUIRE_EQ(side.completions.next_of(Operation::receive).status, Status::ok);
    CHECK_EQ(pattern_difference(in.bytes(0, size), seed), "") << "a message of " << size << " bytes, back";
    REQUIRE_EQ(side.completions.next_of(Operation::send).status, Status::ok);
    fill_pattern(out.bytes(0, size), ~seed);
    const auto notify = [&] {
      return side.endpoint.write_with_immediate(out_region.slice(0, size), target.at(0),
                                                static_cast<std::uint32_t>(size), 3);
    };
    REQUIRE_EQ(post_when_possible(side.completions, notify), Status::ok);
    in.poison(0, size);
    REQUIRE_EQ(
        post_when_possible(side.completions,
                           [&] { return side.endpoint.read(in_region.slice(0, size), target.at(0), 4); }),
        Status::ok);
    REQUIRE_EQ(side.completions.next_of(Operation::write_with_immediate).status, Status::ok);
    REQUIRE_EQ(side.completions.next_of(Operation::read).status, Status::ok);
    CHECK_EQ(pattern_difference(in.bytes(0, size), ~seed), "") << "a read of " << size << " bytes";
    REQUIRE_EQ(post_when_possible(
                   side.completions,
                   [&] { return side.endpoint.fetch_add(found_region.whole(), counted.at(0), 1, 5); }),
               Status::ok);
    REQUIRE_EQ(side.completions.next_of(Operation::fetch_add).status, Status::ok);
    CHECK_EQ(found.at<std::uint64_t>(0), count++);
  }
  control.barrier();
}

struct Packets {
  unsigned mtu;
  const char* listen;  // IPv6 asks for 1280 at least
};
const std::string over_v6 = std::string("[") + Wire::peer.v6 + ']';

std::vector<Packets> kinds_of_packets() {
  return {{9000, Wire::peer.v4}, {1280, over_v6.c_str()}, {576, Wire::peer.v4}};
}

CONFORMANCE_TEST(OPS, 9, any_mtu_carries_any_size_over_a_wire, over_a_wire.within(60s)) {
  Peer peer = test.start_process_peer([](Test& t, Channel& control) {
    for (const Packets& packets : kinds_of_packets()) {
      control.barrier();
      SideOptions options;
      options.host = packets.listen;
      Side side = accept_side(t, control, options);
      serve(t, control, side.context, side.completions, side.endpoint, packets.mtu);
    }
  });
  const Wire wire(peer);
  for (const Packets& packets : kinds_of_packets()) {
    wire.set_mtu(packets.mtu);
    peer.control().barrier();
    Side side = connect_side(test, peer.control());
    work(test, peer.control(), side, packets.mtu);
  }
  peer.finish();
}

CONFORMANCE_TEST(OPS, 9, an_mtu_that_shrinks_under_way_harms_nothing_over_a_wire,
                 over_a_wire.full().within(60s)) {
  constexpr unsigned small = 576;
  Peer peer = test.start_process_peer([](Test& t, Channel& control) {
    SideOptions options;
    options.host = Wire::peer.v4;
    Side side = accept_side(t, control, options);
    for (int i = 0; i < 2; ++i) serve(t, control, side.context, side.completions, side.endpoint, small);
  });
  const Wire wire(peer);
  Side side = connect_side(test, peer.control());
  work(test, peer.control(), side, small);
  wire.set_mtu(small);
  work(test, peer.control(), side, small);
  peer.finish();
}

}  // namespace
}  // namespace conformance
