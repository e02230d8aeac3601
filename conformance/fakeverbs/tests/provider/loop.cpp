#include "loop.hpp"

#include <cstdlib>

#include "../peer_process.hpp"

namespace fakeverbs_test {

namespace {

constexpr auto patience = 30s;

weft::Context open(std::chrono::milliseconds peer_timeout) {
  weft::ContextOptions options;
  options.provider = "verbs:fake0";
  options.peer_timeout = peer_timeout;
  return weft::Context::open(options);
}

}  // namespace

Loop::Loop(std::chrono::milliseconds peer_timeout)
    : context(open(peer_timeout)),
      near_queue(context.create_completion_queue()),
      far_queue(context.create_completion_queue()),
      listener(context.listen("127.0.0.1:0", {.queue = far_queue})),
      region(context.register_memory(bytes, weft::Access::local_write)) {
  connect();
}

void Loop::connect() {
  near = context.connect(listener.address(), {.queue = near_queue});
  (void)until(far_queue, weft::Operation::connection_request);
  far = listener.next()->accept({.queue = far_queue});
  near.wait_up(patience);
  far.wait_up(patience);
}

std::vector<weft::Completion> Loop::until(const weft::CompletionQueue& queue,
                                          weft::Operation operation) const {
  weft::CompletionQueue from = queue;
  std::vector<weft::Completion> all;
  std::array<weft::Completion, 1> entry;
  const auto give_up = std::chrono::steady_clock::now() + patience;
  while (std::chrono::steady_clock::now() < give_up) {
    for (const weft::Completion& one : from.wait(entry, 1s)) {
      all.push_back(one);
      if (one.operation == operation) return all;
    }
  }
  ADD_FAILURE() << to_string(operation) << " did not come in time";
  return all;
}

void expect_under_plan(const char* plan, const std::function<void()>& body) {
  PeerProcess child([&](Wire&) {
    ::setenv("FAKEVERBS_PLAN", plan, 1);
    body();
  });
  EXPECT_EQ(child.wait(), 0) << "under the plan \"" << plan << '"';
}

}  // namespace fakeverbs_test
