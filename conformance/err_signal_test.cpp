// ERR-6: signals.
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "harness/side.hpp"

namespace conformance {
namespace {

using weft::Completion;
using weft::Operation;
using weft::Segment;
using weft::Status;

std::atomic<int> broken_pipes = 0;

// Posts to a peer that is killed. Without a helper nobody notices before the calls do that send into the
// void.
void post_to_the_killed(Test& test, weft::ProgressMode progress, bool single) {
  Peer peer = test.start_process_peer([](Test& t, Channel& control) {
    Side side = accept_side(t, control);
    const GuardedBuffer memory(1 << 20);
    weft::MemoryRegion region = side.region(memory, weft::Access::remote_write);
    give_key(control, region);
    control.barrier();
    // What came is read: otherwise its socket would reset the connection, and no call would send into the
    // void.
    (void)side.completions.all_within(50ms);
    control.barrier();
    control.barrier(60s);
  });
  // A program that has not asked for anything else would be ended by it.
  broken_pipes = 0;
  REQUIRE(signal(SIGPIPE, [](int) { broken_pipes.fetch_add(1); }) != SIG_ERR);
  weft::ContextOptions context_options = test.context_options();
  context_options.progress_mode = progress;
  Side side;
  side.context = weft::Context::open(context_options);
  side.completions = Completions(side.context.create_completion_queue());
  side.endpoint = connect_one(side, peer.control());
  const weft::RemoteMemory remote = side.take_key(peer.control());
  peer.control().barrier();
  peer.control().barrier();
  const GuardedBuffer buffer(1 << 20);
  weft::MemoryRegion region = side.region(buffer);
  peer.kill();
  for (int i = 0; i < 10 && single; ++i) {
    pause(5ms);
    (void)side.endpoint.send(region.slice(0, 1000), 1);
  }
  // Posting goes on while the connection dies under it.
  const Deadline deadline(5s);
  Status status = Status::ok;
  const Segment pieces[] = {region.slice(0, 1000), region.slice(1000, 100'000), region.slice(7, 7)};
  std::vector<weft::WorkRequest> batch(3);
  for (weft::WorkRequest& request : batch) {
    request.operation = Operation::write;  // it needs nobody's receive to go out
    request.segments = pieces;
    request.remote = remote.at(0);
  }
  while (status != Status::not_connected && !deadline.passed()) {
    // One by one, and several in pieces: they need not leave by the same system call.
    status = single ? side.endpoint.send(region.slice(0, 1000), 1) : side.endpoint.post(batch).status;
    side.completions.collect();
  }
  CHECK_EQ(status, Status::not_connected);
  CHECK_EQ(side.completions.until_ended(side.endpoint).back().operation, Operation::endpoint_ended);
  CHECK_EQ(broken_pipes.load(), 0) << "SIGPIPE was raised";
  peer.finish();
}

CONFORMANCE_TEST(ERR, 6, a_vanished_peer_raises_no_signal, with_process) {
  for (const auto progress : {weft::ProgressMode::automatic, weft::ProgressMode::when_called}) {
    for (const bool single : {true, false}) post_to_the_killed(test, progress, single);
  }
}

std::atomic<int> ticks = 0;  // any thread may take the signal
void count_tick(int) { ticks.fetch_add(1); }

CONFORMANCE_TEST(ERR, 6, interrupted_calls_are_resumed, alone) {
  Loop loop = make_loop(test);
  struct sigaction action {};
  action.sa_handler = count_tick;  // without SA_RESTART: every system call in its way is interrupted
  REQUIRE_EQ(sigaction(SIGALRM, &action, nullptr), 0);
  itimerval timer{{0, 500}, {0, 500}};
  REQUIRE_EQ(setitimer(ITIMER_REAL, &timer, nullptr), 0);
  std::vector<Completion> room(4);
  weft::CompletionQueue queue = loop.near.queue();
  const Stopwatch watch;
  CHECK_EQ(queue.wait(room, 300ms).reason(), weft::Polled::Reason::timeout);
  CHECK_GE(watch.elapsed(), 300ms);
  for (int i = 0; i < 20; ++i) check_ping(loop);
  { const Loop another = make_loop(test); }
  timer = {};
  REQUIRE_EQ(setitimer(ITIMER_REAL, &timer, nullptr), 0);
  CHECK_GE(ticks, 50);
}

CONFORMANCE_TEST(ERR, 6, helper_threads_take_no_signals, alone) {
  const Loop loop = make_loop(test);
  const std::string own = std::to_string(getpid());
  int helpers = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream comm(task.path() / "comm");
    std::string name;
    std::getline(comm, name);
    if (task.path().filename() == own || name == "canary") continue;
    ++helpers;
    std::ifstream status(task.path() / "status");
    std::string line;
    std::uint64_t blocked = 0;
    while (std::getline(status, line)) {
      if (line.rfind("SigBlk:", 0) == 0) blocked = std::stoull(line.substr(7), nullptr, 16);
    }
    for (const int number :
         {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGCHLD, SIGPIPE, SIGWINCH}) {
      CHECK((blocked >> (number - 1) & 1) == 1) << "thread " << name << " takes signal " << number;
    }
  }
  CHECK_GE(helpers, 1) << "progress is automatic, so somebody must be there";
}

}  // namespace
}  // namespace conformance
