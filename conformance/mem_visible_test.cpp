// MEM-6, MEM-7, MEM-8: limits, fork, visibility.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "harness/process_state.hpp"
#include "harness/side.hpp"

namespace conformance {
namespace {

using weft::Access;
using weft::Completion;
using weft::Flags;
using weft::Operation;
using weft::Segment;
using weft::Status;

// Within the limits of the process, what fails says which limit, its value and the size.
CONFORMANCE_TEST(MEM, 6, a_limit_that_is_in_the_way_is_named, alone) {
  weft::Context context = test.open_context();
  const rlimit small{65536, 65536};
  rlimit before{};
  REQUIRE_EQ(getrlimit(RLIMIT_MEMLOCK, &before), 0);
  constexpr std::size_t size = std::size_t{16} << 20;
  const GuardedBuffer buffer(size);
  const rlimit lowered{small.rlim_cur, before.rlim_max};
  REQUIRE_EQ(setrlimit(RLIMIT_MEMLOCK, &lowered), 0);
  const auto error = error_of([&] { (void)context.register_memory(buffer.bytes(), Access::local_write); });
  REQUIRE_EQ(setrlimit(RLIMIT_MEMLOCK, &before), 0);
  if (error) {
    // A fabric that locks memory.
    const std::string text = error->what();
    CHECK_EQ(error->code(), Status::resource_limit);
    CHECK(text.find("memlock") != std::string::npos || text.find("MEMLOCK") != std::string::npos) << text;
    CHECK(text.find("64") != std::string::npos || text.find("65536") != std::string::npos) << text;
    CHECK(text.find("16") != std::string::npos) << text;
  }
  // With the limit out of the way the same call works.
  CHECK_EQ(context.register_memory(buffer.bytes(), Access::local_write).length(), size);
}

// The undefined-behaviour sanitizer needs descriptors when it sees an object for the first time, and takes
// their lack for a broken object: so it is shown what there is before there are none.
void use_everything_once(Loop& loop) {
  CHECK(!std::generic_category().message(EMFILE).empty());
  check_ping(loop);
  weft::EndpointOptions options;
  options.queue = loop.near.queue();
  weft::Endpoint endpoint = loop.context.connect(loop.listener.address(), options);
  next_request(loop.far, loop.listener).reject();
  CHECK_EQ(loop.near.next_of(Operation::connect, endpoint).status, Status::rejected);
  endpoint = loop.context.connect(loop.listener.address(), options);
  options.queue = loop.far.queue();
  weft::Endpoint accepted = next_request(loop.far, loop.listener).accept(options);
  options.queue = loop.near.queue();
  endpoint.wait_up(patience);
  endpoint.abort();
  (void)loop.near.until_ended(endpoint);
  (void)loop.far.until_ended(accepted);
  weft::ListenOptions listen;
  listen.queue = loop.far.queue();
  weft::Listener closed = loop.context.listen(host_of(loop.context) + ":0", listen);
  const std::string address = closed.address();
  closed.close();
  endpoint = loop.context.connect(address, options);
  CHECK_EQ(loop.near.next_of(Operation::connect, endpoint).status, Status::refused);
}

CONFORMANCE_TEST(MEM, 6, running_out_of_descriptors_is_an_error_for_the_newcomer_only, alone) {
  Loop loop = make_loop(test);
  use_everything_once(loop);
  rlimit before{};
  REQUIRE_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit lowered{holdings_of_this_process().descriptors + 1, before.rlim_max};
  REQUIRE_EQ(setrlimit(RLIMIT_NOFILE, &lowered), 0);
  weft::EndpointOptions options;
  options.queue = loop.near.queue();
  options.timeout = 2s;
  std::vector<weft::Endpoint> newcomers;
  std::size_t failed = 0;
  std::string text;
  for (int i = 0; i < 4; ++i) {
    const auto error =
        error_of([&] { newcomers.push_back(loop.context.connect(loop.listener.address(), options)); });
    if (error) {
      ++failed;
      text = error->what();
      CHECK_EQ(error->code(), Status::resource_limit) << text;
    }
  }
  for (const weft::Endpoint& endpoint : newcomers) {
    const Completion outcome = loop.near.next_of(Operation::connect, endpoint, 5s);
    CHECK_NE(outcome.status, Status::ok);
    if (outcome.status != Status::resource_limit) continue;
    ++failed;
    text = endpoint.describe_end();
  }
  CHECK_GE(failed, 1) << "nobody was told of the limit";
  CHECK(text.find("descriptor") != std::string::npos || text.find("NOFILE") != std::string::npos) << text;
  CHECK(text.find(std::to_string(lowered.rlim_cur)) != std::string::npos)
      << "the limit's value is not in: " << text;
  check_ping(loop);
  REQUIRE_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  newcomers.clear();
  while (loop.listener.next().has_value()) {
  }
  (void)loop.far.all_within(50ms);
  options.timeout = 10s;
  weft::Endpoint near = loop.context.connect(loop.listener.address(), options);
  options.queue = loop.far.queue();
  weft::Endpoint far;
  // Arrivals of those that gave up may still be in front of it.
  CHECK(eventually(5s, [&] {
    loop.far.collect();
    while (auto request = loop.listener.next()) {
      try {
        far = request->accept(options);
      } catch (const weft::Error&) {
        continue;
      }
    }
    return near.state() == weft::EndpointState::up;
  }));
}

// What the forked child does; it says by its exit status what it found.
int use_inert_objects(Loop& loop, const weft::MemoryRegion& region) {
  if (loop.near_endpoint.send(region.slice(0, 8), 1) == Status::ok) return 2;
  if (loop.near_endpoint.receive(region.slice(0, 8), 1) == Status::ok) return 3;
  std::vector<Completion> room(4);
  weft::CompletionQueue queue = loop.near.queue();
  if (!queue.poll(room).empty()) return 4;
  if (queue.wait(room, 100ms).size() != 0) return 5;
  if (!error_of([&] { (void)loop.context.create_completion_queue(); })) return 6;
  weft::EndpointOptions options;
  options.queue = queue;
  if (!error_of([&] { (void)loop.context.connect("127.0.0.1:7", options); })) return 7;
  loop.near_endpoint.abort();
  loop.far_endpoint = weft::Endpoint();
  return 0;
}

CONFORMANCE_TEST(MEM, 7, after_fork_the_parent_goes_on_and_the_child_is_inert, alone) {
  Loop loop = make_loop(test);
  const GuardedBuffer buffer(1 << 16);
  const GuardedBuffer target(1 << 16);
  buffer.fill(test.seed());
  weft::MemoryRegion region = loop.region(buffer);
  weft::MemoryRegion target_region = loop.region(
      target, Access::local_write | Access::remote_write | Access::remote_read | Access::remote_atomic);
  const weft::RemoteMemory remote = loop.near_endpoint.import_memory(target_region.key());
  for (int round = 0; round < 3; ++round) {
    REQUIRE_EQ(loop.far_endpoint.receive(target_region.whole(), 1), Status::ok);
    const pid_t child = fork();
    if (child == 0) _exit(use_inert_objects(loop, region));
    REQUIRE_GE(child, 1);
    target.poison();
    REQUIRE_EQ(loop.near_endpoint.send(region.whole(), 2), Status::ok);
    CHECK_EQ(loop.far.next_of(Operation::receive).status, Status::ok);
    CHECK_EQ(loop.near.next_of(Operation::send).status, Status::ok);
    CHECK_EQ(target.difference(test.seed()), "");
    target.poison();
    REQUIRE_EQ(loop.near_endpoint.write(region.whole(), remote.at(0), 3), Status::ok);
    CHECK_EQ(loop.near.next_of(Operation::write).status, Status::ok);
    REQUIRE_EQ(loop.near_endpoint.flush(4), Status::ok);
    CHECK_EQ(loop.near.next_of(Operation::flush).status, Status::ok);
    CHECK_EQ(target.difference(test.seed()), "");
    buffer.poison();
    REQUIRE_EQ(loop.near_endpoint.read(region.whole(), remote.at(0), 5), Status::ok);
    CHECK_EQ(loop.near.next_of(Operation::read).status, Status::ok);
    CHECK_EQ(buffer.difference(test.seed()), "");
    REQUIRE_EQ(loop.near_endpoint.fetch_add(region.slice(0, 8), remote.at(0), 1, 6), Status::ok);
    CHECK_EQ(loop.near.next_of(Operation::fetch_add).status, Status::ok);
    CHECK_EQ(target.at<std::uint64_t>(0), buffer.at<std::uint64_t>(0) + 1);
    buffer.fill(test.seed());
    int status = -1;
    CHECK(eventually(10s, [&] { return waitpid(child, &status, WNOHANG) == child; })) << "the child hangs";
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "the child's status is " << status;
    check_ping(loop);
  }
}

CONFORMANCE_TEST(MEM, 7, the_parents_death_is_noticed_although_a_child_lives, with_process) {
  Peer peer = test.start_process_peer([](Test& t, Channel& control) {
    SideOptions options;
    options.peer_timeout = 2s;
    Side side = accept_side(t, control, options);
    const pid_t child = fork();
    if (child == 0) {
      // Lives on with whatever it inherited, without a call into the library.
      pause(8s);
      _exit(0);
    }
    control.send_value(child);
    control.barrier(60s);
  });
  SideOptions options;
  options.peer_timeout = 2s;
  Side side = connect_side(test, peer.control(), options);
  const auto child = peer.control().receive_value<pid_t>();
  peer.kill();
  const auto all = side.completions.until_ended(side.endpoint, 5s);
  CHECK_EQ(all.back().status, Status::peer_lost);
  CHECK_EQ(kill(child, 0), 0) << "the child was to outlive its parent";
  kill(child, SIGKILL);
  peer.finish();
}

CONFORMANCE_TEST(MEM, 8, one_buffer_is_the_source_of_many_transfers_at_once, alone) {
  constexpr std::size_t size = 100'000;
  constexpr std::size_t count = 8;
  Loop loop = make_loop(test);
  const GuardedBuffer source(size);
  const GuardedBuffer target(2 * count * size);
  source.fill(test.seed());
  weft::MemoryRegion source_region = loop.region(source, Access::none);
  weft::MemoryRegion target_region = loop.region(target, Access::local_write | Access::remote_write);
  const weft::RemoteMemory remote = loop.near_endpoint.import_memory(target_region.key());
  for (std::size_t i = 0; i < count; ++i) {
    REQUIRE_EQ(loop.far_endpoint.receive(target_region.slice(i * size, size), i), Status::ok);
  }
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t place = (count + i) * size;
    REQUIRE_EQ(post_soon([&] { return loop.near_endpoint.send(source_region.whole(), i); }), Status::ok);
    REQUIRE_EQ(
        post_soon([&] { return loop.near_endpoint.write(source_region.whole(), remote.at(place), i); }),
        Status::ok);
  }
  for (const Completion& completion : loop.far.take(count)) CHECK_EQ(completion.status, Status::ok);
  for (const Completion& completion : loop.near.take(2 * count)) CHECK_EQ(completion.status, Status::ok);
  REQUIRE_EQ(loop.near_endpoint.flush(1), Status::ok);
  CHECK_EQ(loop.near.next().status, Status::ok);
  for (std::size_t i = 0; i < 2 * count; ++i) {
    CHECK_EQ(pattern_difference(target.bytes(i * size, size), test.seed()), "") << "transfer " << i;
  }
}

// What is small may be kept beside the message; it must be what was there at the post, each time.
CONFORMANCE_TEST(MEM, 8, a_buffer_may_change_from_one_transfer_to_the_next, alone) {
  Loop loop = make_loop(test);
  const GuardedBuffer source(4096);
  const GuardedBuffer target(4096);
  weft::MemoryRegion source_region = loop.region(source);
  weft::MemoryRegion target_region = loop.region(target, Access::local_write | Access::remote_write);
  const weft::RemoteMemory remote = loop.near_endpoint.import_memory(target_region.key());
  std::uint64_t seed = test.seed();
  for (const std::size_t size : {1U, 8U, 32U, 64U, 500U, 4096U}) {
    for (int round = 0; round < 8; ++round) {
      fill_pattern(source.bytes(0, size), ++seed);
      target.poison();
      REQUIRE_EQ(loop.far_endpoint.receive(target_region.slice(0, size), 1), Status::ok);
      REQUIRE_EQ(loop.near_endpoint.send(source_region.slice(0, size), 2), Status::ok);
      CHECK_EQ(loop.far.next_of(Operation::receive).status, Status::ok);
      CHECK_EQ(loop.near.next_of(Operation::send).status, Status::ok);
      REQUIRE_EQ(pattern_difference(target.bytes(0, size), seed), "") << "send of " << size;
      fill_pattern(source.bytes(0, size), ++seed);
      REQUIRE_EQ(loop.near_endpoint.write(source_region.slice(0, size), remote.at(0), 3), Status::ok);
      CHECK_EQ(loop.near.next_of(Operation::write).status, Status::ok);
      REQUIRE_EQ(loop.near_endpoint.flush(4), Status::ok);
      CHECK_EQ(loop.near.next_of(Operation::flush).status, Status::ok);
      REQUIRE_EQ(pattern_difference(target.bytes(0, size), seed), "") << "write of " << size;
    }
  }
}

CONFORMANCE_TEST(MEM, 8, pieces_of_one_buffer_go_out_in_one_batch, alone) {
  constexpr std::size_t count = 8;
  Loop loop = make_loop(test);
  for (const std::size_t size : {16U, 1000U, 40'000U}) {
    const GuardedBuffer source(count * size);
    const GuardedBuffer target(count * size);
    source.fill(test.seed());
    target.poison();
    weft::MemoryRegion source_region = loop.region(source, Access::none);
    weft::MemoryRegion target_region = loop.region(target, Access::local_write | Access::remote_write);
    const weft::RemoteMemory remote = loop.near_endpoint.import_memory(target_region.key());
    std::vector<Segment> pieces;
    std::vector<weft::WorkRequest> requests(count);
    for (std::size_t i = 0; i < count; ++i) pieces.push_back(source_region.slice(i * size, size));
    for (std::size_t i = 0; i < count; ++i) {
      requests[i].operation = i % 2 == 0 ? Operation::send : Operation::write;
      requests[i].context = i;
      requests[i].segments = {&pieces[i], 1};
      requests[i].remote = remote.at(i * size);
      if (i % 2 == 0)
        REQUIRE_EQ(loop.far_endpoint.receive(target_region.slice(i * size, size), i), Status::ok);
    }
    std::span<const weft::WorkRequest> left = requests;
    REQUIRE_EQ(post_soon([&] {
                 const weft::PostResult result = loop.near_endpoint.post(left);
                 left = left.subspan(result.accepted);
                 return result.status;
               }),
               Status::ok);
    for (const Completion& completion : loop.near.take(count)) CHECK_EQ(completion.status, Status::ok);
    for (const Completion& completion : loop.far.take(count / 2)) CHECK_EQ(completion.status, Status::ok);
    REQUIRE_EQ(loop.near_endpoint.flush(1), Status::ok);
    CHECK_EQ(loop.near.next().status, Status::ok);
    CHECK_EQ(target.difference(test.seed()), "") << "pieces of " << size;
  }
}

CONFORMANCE_TEST(MEM, 8, what_a_transfer_wrote_is_visible_to_the_thread_that_took_its_completion, with_peer) {
  static constexpr std::size_t size = 20'000;
  constexpr std::uint64_t wanted_rounds = 300;
  Peer peer = test.start_peer([](Test& t, Channel& control) {
    Side side = accept_side(t, control);
    const GuardedBuffer buffer(size);
    weft::MemoryRegion region = side.region(buffer);
    for (std::uint64_t round = 0, all = t.rounds(wanted_rounds, size); round < all; ++round) {
      REQUIRE_EQ(side.endpoint.receive(region.whole(), 1), Status::ok);
      REQUIRE_EQ(side.endpoint.send(Segment{}, 2, Flags::unsignalled), Status::ok);
      CHECK_EQ(side.completions.next().bytes, size);
      // Ordinary reads, in this very thread.
      REQUIRE_EQ(buffer.difference(t.seed() + round), "") << "round " << round;
    }
    control.barrier();
  });
  Side side = connect_side(test, peer.control());
  const GuardedBuffer buffer(size);
  weft::MemoryRegion region = side.region(buffer);
  for (std::uint64_t round = 0, all = test.rounds(wanted_rounds, size); round < all; ++round) {
    REQUIRE_EQ(side.endpoint.receive(Segment{}, 1), Status::ok);
    CHECK_EQ(side.completions.next_of(Operation::receive).status, Status::ok);
    // Written by another thread, sequenced before the post by its end.
    std::thread([&] { buffer.fill(test.seed() + round); }).join();
    REQUIRE_EQ(side.endpoint.send(region.whole(), 2), Status::ok);
    CHECK_EQ(side.completions.next_of(Operation::send).status, Status::ok);
  }
  peer.control().barrier();
  peer.finish();
}

}  // namespace
}  // namespace conformance
