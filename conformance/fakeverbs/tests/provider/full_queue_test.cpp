// The device goes while many endpoints of one completion queue have all outstanding that they may have: the
// device's queues have room for every flushed request, so each operation is told once, and then each end.
#include <map>
#include <string>

#include "loop.hpp"

namespace fakeverbs_test {
namespace {

using weft::Completion;
using weft::Operation;
using weft::Status;

constexpr std::size_t pairs = 20;
constexpr std::uint32_t depth = 64;

struct Told {
  std::size_t sends = 0;
  std::size_t receives = 0;
  std::size_t ends = 0;
};

struct Crowd {
  Crowd()
      : context(open()),
        near_queue(context.create_completion_queue({.capacity = (pairs + 1) * 2 * depth})),
        far_queue(context.create_completion_queue()),
        listener(context.listen("127.0.0.1:0", {.queue = far_queue})),
        region(context.register_memory(bytes, weft::Access::local_write)) {}

  static weft::Context open() {
    weft::ContextOptions options;
    options.provider = "verbs:fake0";
    options.peer_timeout = 60s;  // no probes of the library meanwhile: the plan counts the program's sends
    return weft::Context::open(options);
  }

  void connect() {
    near.push_back(context.connect(listener.address(),
                                   {.queue = near_queue, .send_depth = depth, .receive_depth = depth}));
    std::array<Completion, 16> entries;
    const auto give_up = std::chrono::steady_clock::now() + 30s;
    bool accepted = false;
    while (!accepted && std::chrono::steady_clock::now() < give_up) {
      for (const Completion& entry : far_queue.wait(entries, 1s)) {
        if (entry.operation != Operation::connection_request) continue;
        far.push_back(listener.next()->accept({.queue = far_queue}));
        accepted = true;
      }
    }
    ASSERT_TRUE(accepted);
    near.back().wait_up(30s);
    far.back().wait_up(30s);
  }

  std::array<std::byte, 4096> bytes{};
  weft::Context context;
  weft::CompletionQueue near_queue;
  weft::CompletionQueue far_queue;
  weft::Listener listener;
  weft::MemoryRegion region;
  std::vector<weft::Endpoint> near;
  std::vector<weft::Endpoint> far;
};

void fill_and_lose_the_device() {
  Crowd crowd;
  for (std::size_t i = 0; i < pairs + 1; ++i) crowd.connect();
  // The peers post no receives: all of this stays outstanding. The last one has room for what strikes.
  for (std::size_t i = 0; i < pairs; ++i) {
    for (std::uint32_t n = 0; n < depth; ++n) {
      ASSERT_EQ(crowd.near[i].receive(crowd.region.slice(0, 64), n), Status::ok);
      ASSERT_EQ(crowd.near[i].send(crowd.region.slice(64, 64), n), Status::ok);
    }
    ASSERT_EQ(crowd.near[i].send(crowd.region.slice(64, 64), depth), Status::again);
  }
  std::size_t sent_last = 0;
  while (sent_last < depth && crowd.near.back().send(crowd.region.slice(64, 64), sent_last) == Status::ok)
    ++sent_last;

  std::map<std::uint32_t, Told> told;
  std::size_t ends = 0;
  std::array<Completion, 64> entries;
  const auto give_up = std::chrono::steady_clock::now() + 60s;
  while (ends < pairs + 1 && std::chrono::steady_clock::now() < give_up) {
    for (const Completion& entry : crowd.near_queue.wait(entries, 1s)) {
      Told& of = told[entry.endpoint_id];
      if (entry.operation == Operation::endpoint_ended) {
        EXPECT_EQ(entry.status, Status::aborted) << to_string(entry.status);
        ++of.ends;
        ++ends;
      } else if (entry.operation == Operation::send) {
        EXPECT_EQ(entry.context, of.sends) << "in order, each once";
        ++of.sends;
      } else if (entry.operation == Operation::receive) {
        EXPECT_EQ(entry.context, of.receives) << "in order, each once";
        ++of.receives;
      }
    }
  }
  ASSERT_EQ(ends, pairs + 1);
  for (std::size_t i = 0; i < pairs; ++i) {
    const Told& of = told[crowd.near[i].id()];
    EXPECT_EQ(of.sends, depth);
    EXPECT_EQ(of.receives, depth);
    EXPECT_EQ(of.ends, 1U);
  }
  EXPECT_EQ(told[crowd.near.back().id()].sends, sent_last);
}

TEST(FullQueue, AllItsEndpointsEndAtOnce) {
  const std::string strike = "fatal=" + std::to_string(pairs * depth + depth / 2);
  expect_under_plan(strike.c_str(), fill_and_lose_the_device);
}

// Each queue of the device has room for two of these endpoints only.
TEST(FullQueue, AndOverManyOfTheDevicesQueues) {
  const std::string strike = "garbage cqe=300 fatal=" + std::to_string(pairs * depth + depth / 2);
  expect_under_plan(strike.c_str(), fill_and_lose_the_device);
}

}  // namespace
}  // namespace fakeverbs_test
