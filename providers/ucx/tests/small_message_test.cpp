// What UCX takes within the call leaves once.
#include <chrono>
#include <thread>

#include "path.hpp"
#include "ucx_queue.hpp"
#include "worker.hpp"

namespace weft::ucx {
namespace {

using namespace std::chrono_literals;

ucs_status_t count(void* arrived, const void* /*header*/, std::size_t /*header_length*/, void* /*data*/,
                   std::size_t /*length*/, const ucp_am_recv_param_t* /*parameters*/) {
  ++*static_cast<int*>(arrived);
  return UCS_OK;
}

class SmallMessages : public testing::TestWithParam<const char*> {};

TEST_P(SmallMessages, LeaveOnce) {
  Worker sender(GetParam());
  Worker receiver(GetParam());
  int arrived = 0;
  receiver.on_message(&count, &arrived);
  Path path;
  path.endpoint = sender.connect(receiver.address());
  ASSERT_NE(path.endpoint, nullptr);
  const std::uint64_t bytes = 7;
  int sent = 0;
  for (int round = 0; round < 5000 && sent < 20; ++round) {
    const ucs_status_t status =
        UcxQueue::send_small(path, {}, {const_cast<std::uint64_t*>(&bytes), sizeof bytes});
    ASSERT_TRUE(status == UCS_OK || status == UCS_ERR_NO_RESOURCE) << ucs_status_string(status);
    if (status == UCS_OK) {
      ++sent;
    } else {
      std::this_thread::sleep_for(1ms);
    }
    sender.progress();
    receiver.progress();
  }
  EXPECT_EQ(sent, 20);
  for (int round = 0; round < 100 || (arrived < sent && round < 5000); ++round) {
    sender.progress();
    receiver.progress();
    if (arrived < sent) std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(arrived, sent);
  sender.close(path.endpoint);
}

INSTANTIATE_TEST_SUITE_P(Lanes, SmallMessages, testing::Values("tcp", "shm"),
                         [](const auto& lanes) { return std::string(lanes.param); });

}  // namespace
}  // namespace weft::ucx
