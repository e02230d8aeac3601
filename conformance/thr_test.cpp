// THR: threads.
#include <array>
#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "harness/run.hpp"
#include "harness/side.hpp"

namespace conformance {
namespace {

using weft::Access;
using weft::Completion;
using weft::Flags;
using weft::Operation;
using weft::Segment;
using weft::Status;

// Runs it in a thread of its own and notes what it throws; the failure of one stops the others.
class Worker {
 public:
  template <class Function>
  explicit Worker(Function function)
      : thread_([function = std::move(function)] { run_noting_failures(Role::peer, function); }) {}
  Worker(Worker&&) noexcept = default;
  ~Worker() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::thread thread_;
};

CONFORMANCE_TEST(THR, 1, each_completion_goes_to_exactly_one_thread, alone.within(60s)) {
  if (test.setting().threads == weft::ThreadMode::single) {
    // What `safe` promises is not promised here; one thread at a time, any thread, is.
    Loop loop = make_loop(test);
    for (int i = 0; i < 10; ++i) Worker([&] { check_ping(loop); });
    check_ping(loop);
    return;
  }
  constexpr std::size_t endpoints = 4;
  constexpr std::uint64_t per_endpoint = 5000;
  constexpr std::uint64_t total = endpoints * per_endpoint;
  Loop loop = make_loop(test);
  std::vector<weft::Endpoint> near = {loop.near_endpoint};
  std::vector<weft::Endpoint> far = {loop.far_endpoint};
  for (std::size_t i = 1; i < endpoints; ++i) {
    weft::EndpointOptions options;
    options.queue = loop.near.queue();
    near.push_back(loop.context.connect(loop.listener.address(), options));
    options.queue = loop.far.queue();
    far.push_back(next_request(loop.far, loop.listener).accept(options));
    near.back().wait_up(patience);
    far.back().wait_up(patience);
  }
  const GuardedBuffer buffer(1 << 20);
  weft::MemoryRegion region = loop.region(buffer);
  std::vector<std::atomic<int>> sent(total);
  std::vector<std::atomic<int>> received(total);
  std::atomic<std::uint64_t> sends_taken{0};
  std::atomic<std::uint64_t> receives_taken{0};
  const auto size_of = [](std::uint64_t i) -> std::size_t { return i % 100 == 0 ? 50'000 : i % 300; };
  const Deadline deadline(40s);
  const auto busy = [&] { return !deadline.passed() && !Findings::here().failed(); };
  const auto poll_one = [&](weft::CompletionQueue queue, std::vector<std::atomic<int>>& counts,
                            std::atomic<std::uint64_t>& taken, bool waiting) {
    std::array<Completion, 16> room;
    while (taken.load() < total && busy()) {
      for (const Completion& completion : waiting ? queue.wait(room, 10ms) : queue.poll(room)) {
        REQUIRE_EQ(completion.status, Status::ok);
        REQUIRE_LE(completion.context, total - 1);
        // A receive may be taken by either thread's message; a send has its own length.
        if (completion.operation == Operation::send)
          REQUIRE_EQ(completion.bytes, size_of(completion.context));
        ++counts[completion.context];
        ++taken;
      }
    }
  };
  {
    std::vector<Worker> workers;
    for (std::size_t half = 0; half < 2; ++half) {
      // Two threads post to every endpoint, each one half of the numbers.
      workers.emplace_back([&, half] {
        for (std::uint64_t i = half; i < total && busy();) {
          weft::Endpoint& endpoint = near[i / 2 % endpoints];
          const Status status = endpoint.send(region.slice(0, size_of(i)), i);
          if (status == Status::ok) i += 2;
          if (status != Status::ok) REQUIRE_EQ(status, Status::again);
        }
      });
      workers.emplace_back([&, half] {
        for (std::uint64_t i = half; i < total && busy();) {
          const Status status = far[i / 2 % endpoints].receive(region.slice(1 << 19, 50'000), i);
          if (status == Status::ok) i += 2;
          if (status != Status::ok) REQUIRE_EQ(status, Status::again);
        }
      });
    }
    for (int i = 0; i < 2; ++i) {
      workers.emplace_back([&, i] { poll_one(loop.near.queue(), sent, sends_taken, i == 1); });
      workers.emplace_back([&, i] { poll_one(loop.far.queue(), received, receives_taken, i == 1); });
    }
    // Meanwhile others come and go, on queues of their own.
    workers.emplace_back([&] {
      Completions completions(loop.context.create_completion_queue());
      weft::ListenOptions listen;
      listen.queue = completions.queue();
      weft::Listener listener = loop.context.listen(host_of(loop.context) + ":0", listen);
      weft::EndpointOptions options;
      options.queue = completions.queue();
      while (receives_taken.load() < total && busy()) {
        weft::Endpoint a = loop.context.connect(listener.address(), options);
        weft::Endpoint b = next_request(completions, listener).accept(options);
        a.wait_up(patience);
        b.wait_up(patience);
        check_ping(loop.context, a, completions, b, completions);
        a.abort();
        (void)completions.until_ended(b);
      }
    });
  }
  CHECK_EQ(sends_taken.load(), total);
  CHECK_EQ(receives_taken.load(), total);
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < total; ++i) wrong += sent[i] != 1 || received[i] != 1 ? 1 : 0;
  CHECK_EQ(wrong, 0) << "operations that did not complete exactly once";
}

CONFORMANCE_TEST(THR, 1, every_waiter_gets_its_share, alone) {
  if (test.setting().threads == weft::ThreadMode::single) {
    CHECK(test.open_context().attributes().thread_mode == weft::ThreadMode::single);
    return;
  }
  // Two threads sleep on one queue; each completion wakes one of them, and none is left lying.
  const int rounds = 2 * static_cast<int>(test.rounds(100, 2));
  Loop loop = make_loop(test);
  std::atomic<int> taken{0};
  {
    std::vector<Worker> waiters;
    for (int i = 0; i < 2; ++i) {
      waiters.emplace_back([&] {
        weft::CompletionQueue queue = loop.far.queue();
        std::array<Completion, 1> room;
        const Deadline deadline(20s);
        while (taken.load() < rounds && !deadline.passed()) {
          for (const Completion& completion : queue.wait(room, 200ms)) {
            REQUIRE_EQ(completion.operation, Operation::receive);
            ++taken;
          }
        }
      });
    }
    for (int i = 0; i < rounds; i += 2) {
      for (int k = 0; k < 2; ++k) {
        REQUIRE_EQ(loop.far_endpoint.receive(Segment{}, 1), Status::ok);
        REQUIRE_EQ(loop.near_endpoint.send(Segment{}, 2), Status::ok);
      }
      REQUIRE(eventually(5s, [&] { return taken.load() >= i + 2; })) << taken.load() << " of " << i + 2;
      CHECK_EQ(loop.near.take(2).size(), 2);
    }
  }
  CHECK_EQ(taken.load(), rounds);
}

CONFORMANCE_TEST(THR, 2, the_thread_mode_is_what_was_asked_for, alone) {
  for (const weft::ThreadMode mode : {weft::ThreadMode::safe, weft::ThreadMode::single}) {
    weft::ContextOptions options = test.context_options();
    options.thread_mode = mode;
    CHECK(weft::Context::open(options).attributes().thread_mode == mode);
  }
}

CONFORMANCE_TEST(THR, 2, one_thread_at_a_time_may_be_any, alone) {
  weft::ContextOptions options = test.context_options();
  options.thread_mode = weft::ThreadMode::single;
  weft::Context context = weft::Context::open(options);
  Completions near(context.create_completion_queue());
  Completions far(context.create_completion_queue());
  weft::ListenOptions listen;
  listen.queue = far.queue();
  weft::Listener listener = context.listen(host_of(context) + ":0", listen);
  weft::EndpointOptions wish;
  wish.queue = near.queue();
  weft::Endpoint near_endpoint = context.connect(listener.address(), wish);
  wish.queue = far.queue();
  weft::Endpoint far_endpoint = next_request(far, listener).accept(wish);
  near_endpoint.wait_up(patience);
  far_endpoint.wait_up(patience);
  const auto ping = [&] { check_ping(context, near_endpoint, near, far_endpoint, far); };
  ping();
  for (int i = 0; i < 4; ++i) Worker{ping};
  ping();
}

// The helper thread is there in this mode too, although calling is without locks.
CONFORMANCE_TEST(THR, 2, the_helper_serves_a_program_of_one_thread_that_stays_away, with_process) {
  Peer peer = test.start_process_peer([](Test& t, Channel& control) {
    weft::ContextOptions options = t.context_options();
    options.thread_mode = weft::ThreadMode::single;
    Side side;
    side.context = weft::Context::open(options);
    side.completions = Completions(side.context.create_completion_queue());
    weft::ListenOptions listen;
    listen.queue = side.completions.queue();
    side.listener = side.context.listen(host_of(side.context) + ":0", listen);
    side.endpoint = accept_one(side, control);
    const GuardedBuffer memory(1 << 20);
    memory.fill(t.seed());
    weft::MemoryRegion region = side.region(memory, weft::Access::remote_read | weft::Access::remote_write);
    give_key(control, region);
    // From here on no call, until the other side has what it wants.
    control.barrier(30s);
    CHECK_EQ(memory.difference(t.seed() + 1), "");
  });
  Side side = connect_side(test, peer.control());
  const GuardedBuffer buffer(1 << 20);
  weft::MemoryRegion region = side.region(buffer);
  const weft::RemoteMemory remote = side.take_key(peer.control());
  pause(600ms);  // the helper comes soon, and does not go again either
  REQUIRE_EQ(side.endpoint.read(region.whole(), remote.at(0), 1), Status::ok);
  CHECK_EQ(side.completions.next_of(Operation::read, 5s).status, Status::ok);
  CHECK_EQ(buffer.difference(test.seed()), "");
  buffer.fill(test.seed() + 1);
  REQUIRE_EQ(side.endpoint.write(region.whole(), remote.at(0), 2), Status::ok);
  CHECK_EQ(side.completions.next_of(Operation::write, 5s).status, Status::ok);
  REQUIRE_EQ(side.endpoint.flush(3), Status::ok);
  CHECK_EQ(side.completions.next_of(Operation::flush, 5s).status, Status::ok);
  peer.control().barrier();
  peer.finish();
}

}  // namespace
}  // namespace conformance
