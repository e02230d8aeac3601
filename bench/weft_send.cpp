// Sends one way at full speed, in batches of one post call each. The clock stops when the server has taken
// the last message and said so.
#include <algorithm>
#include <vector>

#include "weft_link.hpp"
#include "weft_poster.hpp"
#include "weft_roles.hpp"

namespace perf {
namespace {

LinkPlan send_plan(const std::string& provider, const Workload& workload) {
  LinkPlan plan{.provider = provider};
  plan.send_depth = std::max<std::uint32_t>(plan.send_depth, workload.depth);
  plan.receive_slots = std::max(workload.depth, workload.batch);
  plan.receive_size = workload.size;
  return plan;
}

class SendServer final : public ServerRole {
 public:
  SendServer(const std::string& provider, const Workload& workload) : link_(send_plan(provider, workload)) {
    link_.listen();
  }

  std::string address() const override { return link_.address(); }
  void accept() override { link_.accept(); }

  void serve(std::uint64_t operations) override {
    link_.meet_as_server();
    for (std::uint64_t number = 0; number < operations; ++number) {
      check_stamp(link_.take_message(), number);
      link_.recycle();
    }
    link_.send_word();
  }

 private:
  WeftLink link_;
};

class SendClient final : public ClientRole {
 public:
  SendClient(const std::string& provider, const Workload& workload, const std::string& address)
      : link_(send_plan(provider, workload)), poster_(link_, workload, weft::Operation::send) {
    link_.connect(address);
  }

  std::string fabric() const override { return link_.fabric(); }

  Slice run(std::uint64_t operations) override {
    link_.meet_as_client();
    const auto start = RoundTripClock::Clock::now();
    for (std::uint64_t number = 0; number < operations; number += poster_.batch()) poster_.post_batch(number);
    link_.take_word();
    const std::chrono::duration<double> elapsed = RoundTripClock::Clock::now() - start;
    return {operations, elapsed.count(), {}};
  }

 private:
  WeftLink link_;
  BatchPoster poster_;
};

}  // namespace

std::unique_ptr<ServerRole> make_weft_send_server(const std::string& provider, const Workload& workload) {
  return std::make_unique<SendServer>(provider, workload);
}

std::unique_ptr<ClientRole> make_weft_send_client(const std::string& provider, const Workload& workload,
                                                  const std::string& address) {
  return std::make_unique<SendClient>(provider, workload, address);
}

}  // namespace perf
