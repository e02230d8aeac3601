// ERR-1, ERR-2, ERR-7: how an endpoint ends, and what is told about it.
#include <array>
#include <span>
#include <string>
#include <thread>
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

void receives_too_little(Test& test, Channel& control) {
  Side side = accept_side(test, control);
  for (const bool late : {false, true}) {
    const auto size = control.receive_value<std::size_t>();
    const auto room = control.receive_value<std::size_t>();
    weft::Endpoint endpoint = accept_one(side, control);
    const GuardedBuffer buffer(room);
    buffer.poison();
    Segment segment;
    weft::MemoryRegion region;
    if (room > 0) {
      region = side.region(buffer);
      segment = region.whole();
    }
    if (late) {
      control.barrier();
      pause(50ms);
    }
    REQUIRE_EQ(endpoint.receive(segment, 1), Status::ok);
    // A message that was there already has ended the endpoint by now, or has not.
    const Status second = endpoint.receive(segment, 2);
    CHECK(second == Status::ok || (late && second == Status::not_connected)) << weft::to_string(second);
    if (!late) control.barrier();
    const auto all = side.completions.until_ended(endpoint, 5s);
    REQUIRE_EQ(all.size(), second == Status::ok ? 3U : 2U)
        << size << " bytes into " << room << ": " << list(all);
    CHECK_EQ(all[0].operation, Operation::receive);
    CHECK_EQ(all[0].status, Status::truncated);
    CHECK_EQ(all[0].context, 1);
    CHECK_EQ(all[0].bytes, 0);
    if (second == Status::ok) {
      CHECK_EQ(all[1].status, Status::cancelled);
      CHECK_EQ(all[1].context, 2);
    }
    CHECK_EQ(all.back().operation, Operation::endpoint_ended);
    CHECK_EQ(all.back().status, Status::truncated);
    CHECK_EQ(endpoint.cause(), Status::truncated);
    CHECK_EQ(buffer.underrun(), "");
    control.barrier();
  }
  // Another endpoint, on the same queue and to the same process, is not disturbed.
  REQUIRE_EQ(side.endpoint.send(Segment{}, 9), Status::ok);
  CHECK_EQ(side.completions.next().status, Status::ok);
  control.barrier();
}

void send_too_much(Test& test, std::size_t size, std::size_t room) {
  Peer peer = test.start_peer(receives_too_little);
  Side side = connect_side(test, peer.control());
  REQUIRE_EQ(side.endpoint.receive(Segment{}, 8), Status::ok);
  const GuardedBuffer buffer(size);
  weft::MemoryRegion region = side.region(buffer);
  for (int late = 0; late < 2; ++late) {
    peer.control().send_value(size);
    peer.control().send_value(room);
    weft::Endpoint endpoint = connect_one(side, peer.control());
    if (late == 0) peer.control().barrier();
    // In one call: after the first alone the end may come before the second.
    const std::array<Segment, 2> segments{region.whole(), region.slice(0, 1)};
    const std::array<WorkRequest, 2> requests{
        WorkRequest{.context = 1, .segments = std::span(segments).first(1)},
        WorkRequest{.context = 2, .segments = std::span(segments).last(1)}};
    REQUIRE_EQ(endpoint.post(requests).accepted, requests.size());
    if (late != 0) peer.control().barrier();
    const auto all = side.completions.until_ended(endpoint, 5s);
    CHECK_EQ(all.back().status, Status::truncated) << "both ends report the same cause: " << list(all);
    REQUIRE_EQ(all.size(), 3U) << list(all);
    CHECK_EQ(all[0].context, 1);
    CHECK_EQ(all[1].context, 2);
    CHECK_EQ(endpoint.cause(), Status::truncated);
    CHECK_EQ(endpoint.send(region.slice(0, 1), 3), Status::not_connected);
    peer.control().barrier();
  }
  const Completion received = side.completions.next();
  CHECK_EQ(received.context, 8);
  CHECK_EQ(received.status, Status::ok);
  peer.control().barrier();
  peer.finish();
}

CONFORMANCE_TEST(ERR, 1, a_message_longer_than_its_receive, with_peer) { send_too_much(test, 8192, 4096); }
CONFORMANCE_TEST(ERR, 1, one_byte_more_than_its_receive, with_peer) { send_too_much(test, 4097, 4096); }
CONFORMANCE_TEST(ERR, 1, a_large_message_longer_than_its_receive, with_peer) {
  send_too_much(test, 1 << 20, (1 << 20) - 1);
}
CONFORMANCE_TEST(ERR, 1, one_byte_into_an_empty_receive, with_peer) { send_too_much(test, 1, 0); }

// Every kind of operation outstanding on `endpoint`, as far as its peer leaves them outstanding.
struct Outstanding {
  std::vector<std::uint64_t> sends;
  std::vector<std::uint64_t> receives;
};

Outstanding post_many(weft::Endpoint& endpoint, const weft::MemoryRegion& region,
                      const weft::RemoteMemory& remote) {
  Outstanding outstanding;
  for (std::uint64_t i = 0; i < 4; ++i) {
    REQUIRE_EQ(endpoint.receive(region.slice(0, 64), 1000 + i), Status::ok);
    outstanding.receives.push_back(1000 + i);
  }
  std::uint64_t context = 0;
  const auto note = [&](Status status) {
    if (status == Status::ok) outstanding.sends.push_back(context);
    ++context;
  };
  for (int i = 0; i < 4; ++i) note(endpoint.send(region.whole(), context));
  note(endpoint.write(region.whole(), remote.at(0), context));
  note(endpoint.read(region.whole(), remote.at(0), context));
  note(endpoint.flush(context));
  note(endpoint.send(region.slice(0, 8), context));
  REQUIRE_GE(outstanding.sends.size(), 4U);
  return outstanding;
}

// Each posted operation once, each side in order, `endpoint_ended` last. Early ones may have been done.
void check_all_complete_once(const std::vector<Completion>& all, const Outstanding& outstanding,
                             Status cause) {
  std::vector<std::uint64_t> sends;
  std::vector<std::uint64_t> receives;
  bool failed = false;
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    const Completion& completion = all[i];
    if (completion.operation == Operation::receive) {
      receives.push_back(completion.context);
      CHECK_EQ(completion.status, Status::cancelled);
      continue;
    }
    sends.push_back(completion.context);
    failed = failed || completion.status != Status::ok;
    CHECK(failed ? completion.status != Status::ok : true) << "a success after a failure: " << list(all);
    if (failed) {
      CHECK_EQ(completion.bytes, 0);
      CHECK(completion.status == Status::cancelled || completion.status == cause) << list(all);
    }
  }
  CHECK_EQ(sends, outstanding.sends) << list(all);
  CHECK_EQ(receives, outstanding.receives) << list(all);
  CHECK_EQ(all.back().operation, Operation::endpoint_ended);
  CHECK_EQ(all.back().status, cause) << list(all);
}

CONFORMANCE_TEST(ERR, 2, abort_completes_everything_once_on_both_ends, alone) {
  Loop loop = make_loop(test);
  const GuardedBuffer buffer(1 << 20);
  const GuardedBuffer memory(1 << 20);
  weft::MemoryRegion region = loop.region(buffer);
  weft::MemoryRegion memory_region = loop.region(memory, Access::remote_read | Access::remote_write);
  const weft::RemoteMemory near_remote = loop.near_endpoint.import_memory(memory_region.key());
  const weft::RemoteMemory far_remote = loop.far_endpoint.import_memory(memory_region.key());
  // The sends of each find the four receives of the other, which are too small: only near may post receives.
  Outstanding near = post_many(loop.near_endpoint, region, near_remote);
  Outstanding far;
  REQUIRE_EQ(loop.far_endpoint.read(region.whole(), far_remote.at(0), 7), Status::ok);
  far.sends.push_back(7);
  loop.near_endpoint.abort();
  check_all_complete_once(loop.near.until_ended(loop.near_endpoint), near, Status::local_close);
  check_all_complete_once(loop.far.until_ended(loop.far_endpoint), far, Status::aborted);
  CHECK_EQ(loop.near_endpoint.cause(), Status::local_close);
  CHECK_EQ(loop.far_endpoint.cause(), Status::aborted);
  CHECK_EQ(loop.near_endpoint.state(), weft::EndpointState::ended);
  for (weft::Endpoint* ended : {&loop.near_endpoint, &loop.far_endpoint}) {
    CHECK_EQ(ended->send(region.slice(0, 1), 1), Status::not_connected);
    CHECK_EQ(ended->receive(region.slice(0, 1), 1), Status::not_connected);
    CHECK_EQ(ended->flush(1), Status::not_connected);
  }
  // The first cause is kept.
  loop.near_endpoint.close(1s);
  loop.near_endpoint.abort();
  loop.far_endpoint.abort();
  CHECK_EQ(list(loop.near.all_within(200ms)), "(none)");
  CHECK_EQ(list(loop.far.all_within(1ms)), "(none)");
  CHECK_EQ(loop.far_endpoint.cause(), Status::aborted);
  CHECK(!loop.far_endpoint.describe_end().empty());
  // What has ended touches nothing any more.
  buffer.poison();
  pause(100ms);
  CHECK_EQ(buffer.touched(), "");
}

CONFORMANCE_TEST(ERR, 2, the_end_of_one_endpoint_does_not_disturb_others, alone) {
  Loop loop = make_loop(test);
  for (int round = 0; round < 10; ++round) {
    weft::EndpointOptions options;
    options.queue = loop.near.queue();
    weft::Endpoint near = loop.context.connect(loop.listener.address(), options);
    options.queue = loop.far.queue();
    weft::Endpoint far = next_request(loop.far, loop.listener).accept(options);
    near.wait_up(patience);
    far.wait_up(patience);
    (round % 2 == 0 ? near : far).abort();
    check_ping(loop);
    (void)loop.near.until_ended(near);
    (void)loop.far.until_ended(far);
    check_ping(loop);
  }
}

enum class Way : std::uint8_t { close, abort, drop };

CONFORMANCE_TEST(ERR, 7, every_end_is_reported_once_and_last, alone) {
  for (const Way way : {Way::close, Way::abort, Way::drop}) {
    Loop loop = make_loop(test);
    const GuardedBuffer buffer(64);
    weft::MemoryRegion region = loop.region(buffer);
    REQUIRE_EQ(loop.far_endpoint.receive(region.whole(), 1), Status::ok);
    REQUIRE_EQ(loop.far_endpoint.receive(region.whole(), 2), Status::ok);
    REQUIRE_EQ(loop.near_endpoint.send(region.slice(0, 8), 3), Status::ok);
    CHECK_EQ(loop.far.next().context, 1);
    switch (way) {
      case Way::close:
        loop.near_endpoint.close(1s);
        break;
      case Way::abort:
        loop.near_endpoint.abort();
        break;
      case Way::drop:
        loop.near_endpoint = weft::Endpoint();
        break;
    }
    const auto far = loop.far.until_ended(loop.far_endpoint);
    REQUIRE_EQ(far.size(), 2U) << list(far);
    CHECK_EQ(far[0].context, 2);
    CHECK_EQ(far[0].status, Status::cancelled);
    CHECK_EQ(far[1].status, way == Way::abort ? Status::aborted : Status::disconnected);
    CHECK_EQ(far[1].bytes, 0);
    if (way == Way::drop) {
      CHECK_EQ(list(loop.near.all_within(100ms)), "(none)") << "nobody is left to be told";
    } else {
      const auto near = loop.near.until_ended(loop.near_endpoint);
      REQUIRE_EQ(near.size(), 2U) << list(near);
      CHECK_EQ(near[0].context, 3);
      CHECK_EQ(near[1].status, Status::local_close);
      CHECK_EQ(list(loop.near.all_within(100ms)), "(none)");
    }
    CHECK_EQ(list(loop.far.all_within(100ms)), "(none)");
  }
}

CONFORMANCE_TEST(ERR, 7, an_end_wakes_who_waits, with_process) {
  Peer peer = test.start_process_peer([](Test& t, Channel& control) {
    Side side = accept_side(t, control);
    control.barrier();
    pause(200ms);
    side.endpoint.abort();
    control.barrier();
  });
  Side side = connect_side(test, peer.control());
  peer.control().barrier();
  weft::CompletionQueue queue = side.completions.queue();
  std::vector<Completion> room(4);
  const Stopwatch watch;
  const weft::Polled polled = queue.wait(room, 10s);
  CHECK_LE(watch.without_stalls(), 2s);
  REQUIRE_EQ(polled.size(), 1U);
  CHECK_EQ(polled[0].operation, Operation::endpoint_ended);
  CHECK_EQ(polled[0].status, Status::aborted);
  peer.control().barrier();
  peer.finish();
}

CONFORMANCE_TEST(CMP, 7, a_truncated_receive_reports_no_bytes, alone) {
  Loop loop = make_loop(test);
  const GuardedBuffer source(1000);
  const GuardedBuffer target(999);
  weft::MemoryRegion source_region = loop.region(source);
  weft::MemoryRegion target_region = loop.region(target);
  REQUIRE_EQ(loop.far_endpoint.receive(target_region.whole(), 5), Status::ok);
  REQUIRE_EQ(loop.near_endpoint.send(source_region.whole(), 6), Status::ok);
  const auto all = loop.far.until_ended(loop.far_endpoint);
  REQUIRE_EQ(all.size(), 2U) << list(all);
  CHECK_EQ(all[0].status, Status::truncated);
  CHECK_EQ(all[0].bytes, 0);
  CHECK_EQ(target.underrun(), "");
}

}  // namespace
}  // namespace conformance
