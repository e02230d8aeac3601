// PRG-4 with the plug-in as it is built: what lies in UCX's socket when a program asks whether it may sleep
// is found by that, with nobody else to look.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <optional>
#include <thread>

#include "weft/weft.hpp"

namespace weft {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

template <class Condition>
bool eventually(Condition condition) {
  for (const auto end = Clock::now() + 20s; Clock::now() < end;) {
    if (condition()) return true;
    std::this_thread::sleep_for(1ms);
  }
  return false;
}

// The next entry of that kind; what else comes is taken too.
bool comes(CompletionQueue& queue, CompletionQueue& other, Operation operation) {
  std::array<Completion, 1> entry{};
  std::array<Completion, 8> others{};
  return eventually([&] {
    static_cast<void>(other.poll(others));
    return !queue.poll(entry).empty() && entry[0].operation == operation && entry[0].status == Status::ok;
  });
}

TEST(Arming, FindsWhatLiesInTheSocket) {
  ContextOptions options;
  options.provider = "ucx:tcp";
  options.progress_mode = ProgressMode::when_called;  // no helper looks meanwhile
  Context context = Context::open(options);
  CompletionQueue near_queue = context.create_completion_queue({.capacity = 16});
  CompletionQueue far_queue = context.create_completion_queue({.capacity = 16});
  Listener listener = context.listen("127.0.0.1:0", {.queue = far_queue});
  Endpoint near = context.connect(listener.address(), {.queue = near_queue});
  ASSERT_TRUE(comes(far_queue, near_queue, Operation::connection_request));
  std::optional<ConnectionRequest> request = listener.next();
  ASSERT_TRUE(request.has_value());
  Endpoint far = request->accept({.queue = far_queue});
  ASSERT_TRUE(comes(far_queue, near_queue, Operation::connect));
  near.wait_up(20s);
  for (int round = 0; round < 10; ++round) {
    ASSERT_EQ(far.receive(Segment{}, 1), Status::ok);
    ASSERT_EQ(near.send(Segment{}, 2), Status::ok);
    ASSERT_TRUE(eventually([&] { return !far_queue.arm(); })) << "round " << round;
    ASSERT_TRUE(comes(far_queue, near_queue, Operation::receive));
  }
}

}  // namespace
}  // namespace weft
