// PRG-3, PRG-4: waiting, waking, and the descriptor.
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "harness/process_state.hpp"
#include "harness/side.hpp"

namespace conformance {
namespace {

using weft::Access;
using weft::Completion;
using weft::CompletionQueue;
using weft::Operation;
using weft::Polled;
using weft::Segment;
using weft::Status;

using Room = std::vector<Completion>;

CONFORMANCE_TEST(PRG, 3, wait_honours_its_time, alone) {
  Loop loop = make_loop(test);
  CompletionQueue queue = loop.near.queue();
  Room room(8);
  for (const Duration time : {Duration(0), Duration(1ms), Duration(50ms), Duration(200ms)}) {
    const Stopwatch watch;
    const Polled polled = queue.wait(room, time);
    CHECK_EQ(polled.reason(), Polled::Reason::timeout);
    CHECK(polled.empty());
    CHECK_GE(watch.elapsed(), time);
    CHECK_LE(watch.without_stalls(), time + 200ms);
  }
}

CONFORMANCE_TEST(PRG, 3, wait_sleeps, alone) {
  Loop loop = make_loop(test);
  CompletionQueue queue = loop.near.queue();
  Room room(8);
  const long long before = processor_time();
  CHECK_EQ(queue.wait(room, 1s).reason(), Polled::Reason::timeout);
  CHECK_LE(processor_time() - before, 100'000'000) << "nanoseconds of processor time in a wait of one second";
}

// How a sleep ended that something was done about from another thread.
struct Awakening {
  Polled::Reason reason = Polled::Reason::timeout;
  std::size_t entries = 0;
  bool overslept = false;  // it did not end by itself
  Duration took{0};        // after what was done
};

// Sleeps on the queue. Another thread does what should end that, `when_asleep` or at once; and when it ended
// nothing, wakes the sleeper by hand: a wake that is lost is lost however slow the machine is, and however
// slow it is, nobody sleeps for ever.
Awakening sleep_until(CompletionQueue queue, Room& room, Duration time, bool when_asleep,
                      const std::function<void()>& done_about_it) {
  Awakening awakening;
  std::atomic<bool> awake{false};
  const pid_t sleeper = gettid();
  std::thread other([&, queue]() mutable {
    if (when_asleep) (void)eventually(patience, [&] { return sleeps(sleeper); });
    const Stopwatch watch;
    try {
      done_about_it();
    } catch (const Abandoned&) {
    }
    const Deadline deadline(3s);
    while (!awake && !deadline.passed()) pause(1ms);
    awakening.took = watch.without_stalls();
    awakening.overslept = !awake;
    if (!awake) queue.wake();
  });
  const Polled polled = queue.wait(room, time);
  awake = true;
  other.join();
  awakening.reason = polled.reason();
  awakening.entries = polled.size();
  return awakening;
}

constexpr int sleeps_in_a_row = 20;

CONFORMANCE_TEST(PRG, 3, wait_wakes_for_each_completion, with_peer) {
  Peer peer = test.start_peer([](Test& t, Channel& control) {
    Side side = accept_side(t, control);
    for (int i = 0; i < sleeps_in_a_row; ++i) {
      (void)control.receive_value<int>();
      REQUIRE_EQ(side.endpoint.send(Segment{}, 1), Status::ok);
      CHECK_EQ(side.completions.next().status, Status::ok);
    }
    control.barrier();
  });
  Side side = connect_side(test, peer.control());
  Room room(8);
  for (int i = 0; i < sleeps_in_a_row; ++i) {
    REQUIRE_EQ(side.endpoint.receive(Segment{}, static_cast<std::uint64_t>(i)), Status::ok);
    // Mostly sound asleep; now and then it comes while this side is about to sleep.
    const Awakening awakening =
        sleep_until(side.completions.queue(), room, i % 3 == 0 ? Duration(-1) : Duration(60s), i % 4 != 3,
                    [&] { peer.control().send_value(i); });
    REQUIRE(!awakening.overslept) << "sleep " << i << ": a message came and nobody was woken";
    CHECK_EQ(awakening.reason, Polled::Reason::completions);
    REQUIRE_EQ(awakening.entries, 1U);
    CHECK_EQ(room[0].context, i);
    CHECK_LE(awakening.took, 400ms);
  }
  peer.control().barrier();
  peer.finish();
}

CONFORMANCE_TEST(PRG, 3, a_waiter_is_woken_from_another_thread, alone) {
  Loop loop = make_loop(test);
  CompletionQueue queue = loop.near.queue();
  Room room(8);
  for (const Duration time : {Duration(60s), Duration(-1)}) {
    const Awakening awakening = sleep_until(queue, room, time, true, [queue]() mutable { queue.wake(); });
    REQUIRE(!awakening.overslept) << "woken once, it slept on";
    CHECK_EQ(awakening.reason, Polled::Reason::woken);
    CHECK_LE(awakening.took, 400ms);
  }
  // A wake before the wait is not lost, and one is enough for one wait.
  queue.wake();
  const Stopwatch watch;
  CHECK_EQ(queue.wait(room, 5s).reason(), Polled::Reason::woken);
  CHECK_LE(watch.without_stalls(), 100ms);
  CHECK_EQ(queue.wait(room, 50ms).reason(), Polled::Reason::timeout);
}

CONFORMANCE_TEST(PRG, 3, completions_come_with_or_before_a_wake, alone) {
  Loop loop = make_loop(test);
  CompletionQueue queue = loop.near.queue();
  Room room(8);
  REQUIRE_EQ(loop.far_endpoint.receive(Segment{}, 1), Status::ok);
  REQUIRE_EQ(loop.near_endpoint.send(Segment{}, 2), Status::ok);
  CHECK_EQ(loop.far.next().context, 1);
  pause(50ms);
  queue.wake();
  bool completed = false;
  bool woken = false;
  for (int i = 0; i < 2; ++i) {
    const Polled polled = queue.wait(room, 2s);
    completed = completed || polled.reason() == Polled::Reason::completions;
    woken = woken || polled.reason() == Polled::Reason::woken;
    CHECK(polled.empty() == (polled.reason() != Polled::Reason::completions));
  }
  CHECK(completed);
  CHECK(woken);
}

bool is_readable(int descriptor, Duration time) {
  pollfd ready{descriptor, POLLIN, 0};
  return poll(&ready, 1,
              static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(time).count())) == 1;
}

CONFORMANCE_TEST(PRG, 4, a_completion_that_is_there_makes_arm_refuse, alone) {
  Loop loop = make_loop(test);
  CompletionQueue queue = loop.far.queue();
  REQUIRE_GE(queue.descriptor(), 0);
  for (int i = 0; i < 10; ++i) {
    REQUIRE_EQ(loop.far_endpoint.receive(Segment{}, 1), Status::ok);
    REQUIRE_EQ(loop.near_endpoint.send(Segment{}, 2), Status::ok);
    // Long enough for PRG-1's 100 ms, in which it must be there without a call.
    pause(150ms);
    CHECK(eventually(2s, [&] { return !queue.arm(); })) << "round " << i;
    CHECK(!queue.arm()) << "arm() takes nothing away";
    CHECK_EQ(loop.far.next().context, 1);
    CHECK_EQ(loop.near.next().context, 2);
  }
}

std::uint64_t descriptor_rounds(const Test& test) { return test.rounds(2000, 4096); }

void ping_pong_by_descriptor(const Test& test, Side& side, Channel& control, bool first) {
  CompletionQueue queue = side.completions.queue();
  const GuardedBuffer memory(4096);
  const GuardedBuffer local(4096);
  weft::MemoryRegion memory_region = side.region(memory, Access::remote_read | Access::remote_write);
  weft::MemoryRegion region = side.region(local);
  give_key(control, memory_region);
  const weft::RemoteMemory remote = side.take_key(control);
  std::uint64_t random = test.seed() + (first ? 1 : 2);
  Room room(16);
  // Strictly: arm, and only when that agreed, sleep on the descriptor.
  int sends_open = 0;
  const auto take_one_receive = [&] {
    while (true) {
      bool received = false;
      const Polled polled = queue.poll(room);
      for (const Completion& completion : polled) {
        REQUIRE_EQ(completion.status, Status::ok);
        if (completion.operation == Operation::receive) {
          received = true;
        } else {
          --sends_open;
        }
      }
      if (received) return;
      if (!polled.empty() || !queue.arm()) continue;
      REQUIRE(is_readable(queue.descriptor(), 5s)) << "asleep for 5 s although a message must have come";
    }
  };
  REQUIRE_EQ(side.endpoint.receive(region.whole(), 1), Status::ok);
  control.barrier();
  for (std::uint64_t i = 0, all = descriptor_rounds(test); i < all; ++i) {
    if (!first) take_one_receive();
    if (!first || i > 0) REQUIRE_EQ(side.endpoint.receive(region.whole(), 1), Status::ok);
    random = random * 6364136223846793005U + 1442695040888963407U;
    if ((random >> 60) < 4) pause(std::chrono::microseconds((random >> 40) % 50));
    const auto post = [&](auto&& one) {
      REQUIRE_EQ(post_soon(one), Status::ok);
      ++sends_open;
    };
    switch ((random >> 50) % 3) {
      case 0:
        post([&] { return side.endpoint.send(region.slice(0, 64), 2); });
        break;
      case 1:
        post([&] { return side.endpoint.write_with_immediate(region.slice(0, 64), remote.at(0), 5, 3); });
        break;
      default:
        post([&] { return side.endpoint.read(region.slice(64, 64), remote.at(0), 4); });
        post([&] { return side.endpoint.send(region.slice(0, 64), 2); });
        break;
    }
    if (first) take_one_receive();
  }
  control.barrier();
  const Deadline deadline(patience);
  while (sends_open > 0 && !deadline.passed()) {
    for (const Completion& completion : queue.wait(room, 100ms)) {
      if (completion.operation != Operation::receive) --sends_open;
    }
  }
  CHECK_EQ(sends_open, 0);
}

CONFORMANCE_TEST(PRG, 4, sleeping_by_the_descriptor_misses_nothing, with_peer) {
  Peer peer = test.start_peer([](Test& t, Channel& control) {
    Side side = accept_side(t, control);
    ping_pong_by_descriptor(t, side, control, false);
    control.barrier();
  });
  Side side = connect_side(test, peer.control());
  ping_pong_by_descriptor(test, side, peer.control(), true);
  peer.control().barrier();
  peer.finish();
}

// Arms and sleeps for a while: how often it woke, and how much processor time went.
void check_quiet(CompletionQueue queue, const std::string& after) {
  Room room(16);
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  epoll_event event{};
  event.events = EPOLLIN;
  REQUIRE_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, queue.descriptor(), &event), 0);
  while (!queue.arm()) (void)queue.poll(room);
  const long long before = processor_time();
  int woken = 0;
  std::size_t entries = 0;
  const auto begin = Clock::now();
  while (Clock::now() - begin < 1s) {
    if (epoll_wait(epoll, &event, 1, 300) > 0) {
      ++woken;
      entries += queue.poll(room).size();
    }
    while (!queue.arm() && woken <= 1000) {
      ++woken;
      entries += queue.poll(room).size();
    }
  }
  CHECK_EQ(entries, 0) << after;
  CHECK_LE(woken, 3) << after;
  CHECK_LE(processor_time() - before, 100'000'000)
      << "nanoseconds of processor time in one second, " << after;
  close(epoll);
}

CONFORMANCE_TEST(PRG, 4, drained_and_armed_it_is_quiet, alone) {
  Loop loop = make_loop(test);
  check_quiet(loop.far.queue(), "after connecting");
  check_ping(loop);
  check_quiet(loop.far.queue(), "after messages");
  check_quiet(loop.near.queue(), "after messages");
  loop.near_endpoint.close(1s);
  (void)loop.far.until_ended(loop.far_endpoint);
  (void)loop.near.until_ended(loop.near_endpoint);
  check_quiet(loop.far.queue(), "after the end");
}

// Each arming by itself: nothing came, so nothing may be told.
CONFORMANCE_TEST(PRG, 4, arming_again_and_again_tells_of_nothing, alone) {
  Loop loop = make_loop(test);
  check_ping(loop);
  Room room(16);
  CompletionQueue queue = loop.far.queue();
  const int descriptor = queue.descriptor();
  int told = 0;
  bool nothing = true;  // in any poll; how many there are differs
  constexpr int rounds = 60;
  for (int i = 0; i < rounds; ++i) {
    const Deadline deadline(2s);
    while (!queue.arm() && !deadline.passed()) nothing = queue.poll(room).empty() && nothing;
    if (!is_readable(descriptor, 10ms)) continue;
    ++told;
    nothing = queue.poll(room).empty() && nothing;
  }
  CHECK(nothing);
  // What the fabric itself still has to say after the messages is told once or twice.
  CHECK_LE(told, 4) << "of " << rounds;
}

CONFORMANCE_TEST(PRG, 4, arrivals_connects_and_ends_make_it_readable, with_peer) {
  Peer peer = test.start_peer([](Test& t, Channel& control) {
    const std::string address = control.receive();
    weft::Context context = t.open_context();
    Completions completions(context.create_completion_queue());
    weft::EndpointOptions options;
    options.queue = completions.queue();
    pause(50ms);
    weft::Endpoint endpoint = context.connect(address, options);
    endpoint.wait_up(patience);
    control.barrier();
    pause(50ms);
    endpoint.abort();
    control.barrier();
  });
  weft::Context context = test.open_context();
  CompletionQueue queue = context.create_completion_queue();
  weft::ListenOptions listen;
  listen.queue = queue;
  weft::Listener listener = context.listen(host_of(context) + ":0", listen);
  weft::EndpointOptions options;
  options.queue = queue;
  peer.control().send(listener.address());
  Room room(4);
  weft::Endpoint endpoint;
  const auto next = [&] {
    while (true) {
      const Polled polled = queue.poll(std::span(room).first(1));
      if (!polled.empty()) return polled[0];
      if (queue.arm()) REQUIRE(is_readable(queue.descriptor(), 5s));
    }
  };
  CHECK_EQ(next().operation, Operation::connection_request);
  auto request = listener.next();
  REQUIRE(request.has_value());
  endpoint = request->accept(options);
  CHECK_EQ(next().operation, Operation::connect);
  peer.control().barrier();
  CHECK_EQ(next().operation, Operation::endpoint_ended);
  peer.control().barrier();
  peer.finish();
}

}  // namespace
}  // namespace conformance
