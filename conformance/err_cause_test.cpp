// ERR-2, ERR-4, ERR-5, ERR-7: the one at fault and those behind it, what is dropped with a handle, and
// reports of ends in the queues where they belong.
#include <algorithm>
#include <string>
#include <vector>

#include "harness/process_state.hpp"
#include "harness/raw_socket.hpp"
#include "harness/side.hpp"

namespace conformance {
namespace {

using weft::Access;
using weft::Completion;
using weft::Flags;
using weft::Operation;
using weft::Segment;
using weft::Status;

// Gives away two keys and takes one region back.
void takes_one_of_two_back(Test& test, Channel& control) {
  Side side = accept_side(test, control);
  const GuardedBuffer memory(4096);
  weft::MemoryRegion stays = side.region(memory, Access::local_write | Access::remote_write);
  weft::MemoryRegion goes = side.region(memory, Access::remote_write | Access::remote_read);
  give_key(control, stays);
  give_key(control, goes);
  control.barrier();
  CHECK_EQ(goes.deregister(), Status::ok);
  for (std::uint64_t i = 0; i < 3; ++i) {
    REQUIRE_EQ(side.endpoint.receive(stays.slice(0, 64), 100 + i), Status::ok);
  }
  control.barrier();
  const auto all = side.completions.until_ended(side.endpoint);
  REQUIRE_EQ(all.size(), 4U) << list(all);
  for (std::uint64_t i = 0; i < 3; ++i) {
    CHECK_EQ(all[i].context, 100 + i);
    CHECK_EQ(all[i].status, Status::cancelled);
  }
  CHECK_EQ(all.back().status, Status::remote_access_error);
  control.barrier();
}

CONFORMANCE_TEST(ERR, 2, the_one_at_fault_has_its_cause_and_the_others_are_cancelled, with_peer) {
  for (const Operation operation : {Operation::write, Operation::read}) {
    for (const Flags flags : {Flags::none, Flags::unsignalled}) {
      Peer peer = test.start_peer(takes_one_of_two_back);
      Side side = connect_side(test, peer.control());
      const weft::RemoteMemory good = side.take_key(peer.control());
      const weft::RemoteMemory gone = side.take_key(peer.control());
      const GuardedBuffer local(4096);
      weft::MemoryRegion region = side.region(local);
      for (std::uint64_t i = 0; i < 3; ++i) {
        REQUIRE_EQ(side.endpoint.receive(region.slice(0, 64), 100 + i), Status::ok);
      }
      peer.control().barrier();
      peer.control().barrier();
      std::vector<std::uint64_t> posted;
      const auto note = [&](std::uint64_t context, Status status) {
        REQUIRE(status == Status::ok || status == Status::not_connected) << weft::to_string(status);
        if (status == Status::ok) posted.push_back(context);
      };
      for (std::uint64_t i = 0; i < 3; ++i) note(i, side.endpoint.write(region.slice(0, 64), good.at(0), i));
      constexpr std::uint64_t culprit = 50;
      note(culprit, operation == Operation::write
                        ? side.endpoint.write(region.slice(0, 64), gone.at(0), culprit, flags)
                        : side.endpoint.read(region.slice(0, 64), gone.at(0), culprit, flags));
      for (std::uint64_t i = 51; i < 54; ++i)
        note(i, side.endpoint.write(region.slice(0, 64), good.at(0), i));
      const auto all = side.completions.until_ended(side.endpoint);
      std::vector<std::uint64_t> sends;
      std::vector<std::uint64_t> receives;
      for (const Completion& completion : all) {
        if (completion.operation == Operation::receive) {
          receives.push_back(completion.context);
          CHECK_EQ(completion.status, Status::cancelled);
        } else if (completion.operation != Operation::endpoint_ended) {
          sends.push_back(completion.context);
          // The word about an earlier one may have been on its way.
          const Status right =
              completion.context == culprit ? Status::remote_access_error : Status::cancelled;
          if (completion.context < culprit && completion.status == Status::ok) continue;
          CHECK_EQ(completion.status, right) << list(all);
        }
      }
      CHECK_EQ(sends, posted) << list(all);
      CHECK_EQ(receives, (std::vector<std::uint64_t>{100, 101, 102})) << list(all);
      CHECK_EQ(all.back().status, Status::remote_access_error);
      peer.control().barrier();
      peer.finish();
    }
  }
}

CONFORMANCE_TEST(ERR, 4, the_last_messages_are_received_however_late, with_peer) {
  static constexpr std::uint64_t count = 3;
  Peer peer = test.start_peer([](Test& t, Channel& control) {
    Side side = accept_side(t, control);
    const GuardedBuffer buffer(64);
    weft::MemoryRegion region = side.region(buffer);
    control.barrier();
    // Everything is sent and the close has begun; only now somebody asks for it.
    pause(200ms);
    for (std::uint64_t i = 0; i < count; ++i) {
      buffer.poison();
      REQUIRE_EQ(side.endpoint.receive(region.whole(), i), Status::ok) << "message " << i;
      const Completion received = side.completions.next();
      REQUIRE_EQ(received.operation, Operation::receive) << "message " << i;
      CHECK_EQ(received.status, Status::ok);
      CHECK_EQ(buffer.at<std::uint64_t>(0), i);
      pause(50ms);
    }
    CHECK_EQ(side.completions.until_ended(side.endpoint).back().status, Status::disconnected);
    control.barrier();
  });
  Side side = connect_side(test, peer.control());
  for (std::uint64_t i = 0; i < count; ++i) {
    REQUIRE_EQ(side.endpoint.send(Segment::inline_bytes(&i, sizeof(i)), i, Flags::inline_data), Status::ok);
  }
  side.endpoint.close(10s);
  peer.control().barrier();
  const auto all = side.completions.until_ended(side.endpoint);
  REQUIRE_EQ(all.size(), count + 1) << list(all);
  for (std::size_t i = 0; i < count; ++i) CHECK_EQ(all[i].status, Status::ok);
  CHECK_EQ(all.back().status, Status::local_close);
  peer.control().barrier();
  peer.finish();
}

CONFORMANCE_TEST(ERR, 5, a_region_dropped_ends_the_endpoints_that_use_it_and_no_others, alone) {
  Loop loop = make_loop(test);
  const GuardedBuffer buffer(4 << 20);
  for (const bool receives : {true, false}) {
    weft::EndpointOptions options;
    options.queue = loop.near.queue();
    weft::Endpoint near = loop.context.connect(loop.listener.address(), options);
    options.queue = loop.far.queue();
    weft::Endpoint far = next_request(loop.far, loop.listener).accept(options);
    near.wait_up(patience);
    far.wait_up(patience);
    weft::MemoryRegion region = loop.region(buffer);
    std::size_t posted = 0;
    if (receives) {
      for (; posted < 3; ++posted) REQUIRE_EQ(near.receive(region.slice(0, 64), posted), Status::ok);
    } else {
      // More than any window takes, and nobody receives it.
      for (; posted < 3 && near.send(region.slice(0, 1 << 20), posted) == Status::ok; ++posted) {
      }
      REQUIRE_GE(posted, 1U);
    }
    CHECK_EQ(region.deregister(), Status::busy);
    const Stopwatch watch;
    region = {};
    CHECK_LE(watch.without_stalls(), 1500ms) << "its endpoint is ended, then there is nothing to wait for";
    buffer.poison();
    const auto all = loop.near.until_ended(near, 2s);
    CHECK_EQ(all.size(), posted + 1) << list(all);
    CHECK_EQ(all.back().status, Status::local_close);
    CHECK_EQ(loop.far.until_ended(far, 2s).back().status, Status::aborted);
    CHECK_EQ(near.receive(Segment{}, 9), Status::not_connected);
    CHECK_EQ(buffer.touched(), "");
  }
  check_ping(loop);
}

CONFORMANCE_TEST(ERR, 5, completions_of_a_destroyed_endpoint_are_not_delivered, alone) {
  for (const bool outstanding : {false, true}) {
    Loop loop = make_loop(test);
    const GuardedBuffer buffer(64);
    weft::MemoryRegion region = loop.region(buffer);
    for (std::uint64_t i = 0; i < 3; ++i) {
      REQUIRE_EQ(loop.near_endpoint.receive(region.slice(0, 8), 100 + i), Status::ok);
      REQUIRE_EQ(loop.near_endpoint.send(region.slice(8, 8), i), Status::ok);
      if (outstanding) continue;
      REQUIRE_EQ(loop.far_endpoint.receive(region.slice(16, 8), i), Status::ok);
      CHECK_EQ(loop.far.next_of(Operation::receive).status, Status::ok);
    }
    // They have completed or not; nobody has taken them.
    loop.near_endpoint = weft::Endpoint();
    CHECK_EQ(list(loop.near.all_within(300ms)), "(none)");
    // What was delivered is received before the end is told.
    for (std::uint64_t i = 0; i < 3 && outstanding; ++i) {
      const Status status = loop.far_endpoint.receive(region.slice(16, 8), i);
      CHECK(status == Status::ok || status == Status::not_connected) << weft::to_string(status);
    }
    (void)loop.far.until_ended(loop.far_endpoint);
    CHECK_EQ(list(loop.near.all_within(100ms)), "(none)");
  }
}

CONFORMANCE_TEST(ERR, 5, endpoints_that_come_and_go_leave_nothing, alone) {
  Loop loop = make_loop(test);
  const auto come_and_go = [&](int rounds) {
    for (int i = 0; i < rounds; ++i) {
      weft::EndpointOptions options;
      options.queue = loop.near.queue();
      weft::Endpoint near = loop.context.connect(loop.listener.address(), options);
      options.queue = loop.far.queue();
      weft::Endpoint far = next_request(loop.far, loop.listener).accept(options);
      near.wait_up(patience);
      far.wait_up(patience);
      near.abort();
      (void)loop.near.until_ended(near);
      (void)loop.far.until_ended(far);
    }
  };
  come_and_go(30);  // what is made once and kept is not meant
  const Holdings holdings = holdings_of_this_process();
  const std::size_t before = held_bytes();
  come_and_go(100);
  CHECK_LE(holdings_of_this_process().descriptors, holdings.descriptors);
  CHECK_LE(holdings_of_this_process().threads, holdings.threads);
  CHECK_LE(held_bytes(), before + (std::size_t{40} << 20)) << "200 endpoints left memory behind";
  check_ping(loop);
}

CONFORMANCE_TEST(ERR, 7, many_ends_are_each_reported_once, alone) {
  Loop loop = make_loop(test);
  constexpr std::size_t count = 24;
  std::vector<weft::Endpoint> near;
  std::vector<weft::Endpoint> far;
  for (std::size_t i = 0; i < count; ++i) {
    weft::EndpointOptions options;
    options.queue = loop.near.queue();
    near.push_back(loop.context.connect(loop.listener.address(), options));
    options.queue = loop.far.queue();
    far.push_back(next_request(loop.far, loop.listener).accept(options));
    near[i].wait_up(patience);
    far[i].wait_up(patience);
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (i % 3 == 0) {
      near[i].abort();
    } else if (i % 3 == 1) {
      far[i].abort();
    } else {
      near[i].close(5s);
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    const Completion near_end = loop.near.next_of(Operation::endpoint_ended, near[i]);
    const Completion far_end = loop.far.next_of(Operation::endpoint_ended, far[i]);
    CHECK_EQ(near_end.status, i % 3 == 1 ? Status::aborted : Status::local_close) << i;
    CHECK_EQ(far_end.status, i % 3 == 0   ? Status::aborted
                             : i % 3 == 1 ? Status::local_close
                                          : Status::disconnected)
        << i;
  }
  CHECK_EQ(list(loop.near.all_within(100ms)), "(none)");
  CHECK_EQ(list(loop.far.all_within(1ms)), "(none)");
}

CONFORMANCE_TEST(ERR, 7, what_never_was_up_reports_no_end, alone) {
  Loop loop = make_loop(test);
  weft::EndpointOptions options;
  options.queue = loop.near.queue();
  const weft::Endpoint rejected = loop.context.connect(loop.listener.address(), options);
  next_request(loop.far, loop.listener).reject();
  CHECK_EQ(loop.near.next_of(Operation::connect, rejected).status, Status::rejected);
  const RawSocket silent = RawSocket::listening();
  options.timeout = 200ms;
  const weft::Endpoint late = loop.context.connect("127.0.0.1:" + std::to_string(silent.port()), options);
  CHECK_EQ(loop.near.next_of(Operation::connect, late).status, Status::timed_out);
  options.timeout = 10s;
  weft::Endpoint cancelled = loop.context.connect(loop.listener.address(), options);
  cancelled.abort();
  CHECK_EQ(loop.near.next_of(Operation::connect, cancelled).status, Status::cancelled);
  CHECK_EQ(list(loop.near.all_within(200ms)), "(none)") << "each has had its one report";
}

CONFORMANCE_TEST(ERR, 7, an_end_comes_after_the_completions_of_both_queues, alone) {
  for (int round = 0; round < 4; ++round) {
    Loop loop = make_loop(test);
    Completions sends(loop.context.create_completion_queue());
    weft::EndpointOptions options;
    options.send_completions = sends.queue();
    options.receive_completions = loop.near.queue();
    weft::Endpoint near = loop.context.connect(loop.listener.address(), options);
    options = {};
    options.queue = loop.far.queue();
    weft::Endpoint far = next_request(loop.far, loop.listener).accept(options);
    near.wait_up(patience);
    far.wait_up(patience);
    CHECK_EQ(list(sends.all_within(20ms)), "(none)");
    CHECK_EQ(list(loop.near.all_within(20ms)), "(none)") << "wait_up leaves no report behind";
    const GuardedBuffer buffer(1 << 16);
    weft::MemoryRegion region = loop.region(buffer);
    std::size_t posted = 0;
    while (posted < 16 && near.send(region.whole(), posted) == Status::ok) ++posted;
    REQUIRE_GE(posted, 1U);
    REQUIRE_EQ(near.receive(region.slice(0, 8), 77), Status::ok);
    (round % 2 == 0 ? near : far).abort();
    const auto ends = loop.near.until_ended(near);
    CHECK_EQ(ends.size(), 2U) << list(ends);
    // Now all others are in their queue, and nothing is waited for that would still have to come.
    const auto polled = sends.take(posted, 400ms);
    REQUIRE_EQ(polled.size(), posted);
    for (std::size_t i = 0; i < posted; ++i) CHECK_EQ(polled[i].context, i);
    (void)loop.far.until_ended(far);
  }
}

CONFORMANCE_TEST(ERR, 7, an_end_needs_no_room, alone) {
  Loop loop = make_loop(test);
  constexpr std::uint32_t capacity = 4;
  weft::CompletionQueueOptions small;
  small.capacity = capacity;
  Completions completions(loop.context.create_completion_queue(small));
  weft::EndpointOptions options;
  options.queue = completions.queue();
  weft::Endpoint near = loop.context.connect(loop.listener.address(), options);
  options.queue = loop.far.queue();
  weft::Endpoint far = next_request(loop.far, loop.listener).accept(options);
  near.wait_up(patience);
  far.wait_up(patience);
  const GuardedBuffer buffer(64);
  weft::MemoryRegion region = loop.region(buffer);
  std::uint64_t posted = 0;
  while (near.receive(region.slice(0, 8), posted) == Status::ok) ++posted;
  CHECK_EQ(posted, capacity);
  far.abort();
  // Every place is taken, and nothing is until the end is known.
  CHECK(eventually(5s, [&] { return near.state() == weft::EndpointState::ended; }));
  const auto all = completions.until_ended(near);
  CHECK_EQ(all.size(), posted + 1) << list(all);
  CHECK_EQ(all.back().status, Status::aborted);
  CHECK_EQ(list(completions.all_within(50ms)), "(none)");
}

}  // namespace
}  // namespace conformance
