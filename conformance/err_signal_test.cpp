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

CONFORMANCE_TEST(ERR, 6, a_vanished_peer_raises_no_signal, with_process) {
  Peer peer = test.start_process_peer([](Test& t, Channel& control) {
    Side side = accept_side(t, control);
    control.barrier();
    control.barrier(60s);
  });
  REQUIRE(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
  Side side = connect_side(test, peer.control());
  peer.control().barrier();
  const GuardedBuffer buffer(1 << 20);
  weft::MemoryRegion region = side.region(buffer);
  peer.kill();
  // Posting goes on while the connection dies under it; a SIGPIPE would end this process.
  const Deadline deadline(5s);
  Status status = Status::ok;
  while (status != Status::not_connected && !deadline.passed()) {
    status = side.endpoint.send(region.slice(0, 1000), 1);
    side.completions.collect();
  }
  CHECK_EQ(status, Status::not_connected);
  CHECK_EQ(side.completions.until_ended(side.endpoint).back().operation, Operation::endpoint_ended);
  peer.finish();
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
