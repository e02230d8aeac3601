// The bare calls beside weft's, on the first device there is.
#include "baselines.hpp"
#include "call_client.hpp"
#include "cost/bare_pair.hpp"

namespace fakeverbs_cost {
namespace {

class BareCalls {
 public:
  explicit BareCalls(const perf::Workload& workload) : chains_(perf::posted_at_once(workload) > 1) {
    signalled_ = workload.size != perf::small_call;
    if (workload.operation == perf::Operation::write)
      work_ = signalled_ ? BarePair::Work::write_4096 : BarePair::Work::write_8;
  }

  [[nodiscard]] static std::string fabric() { return "null"; }
  void post() {
    if (chains_)
      pair_.post_chain(work_);
    else
      pair_.post(work_, signalled_);
  }
  std::size_t poll(std::size_t room) { return pair_.poll(static_cast<int>(room)); }

 private:
  BarePair pair_;
  BarePair::Work work_ = BarePair::Work::send_8;
  bool chains_;
  bool signalled_ = false;
};

const perf::BaselineRegistration registration(
    {"verbs:fake0",
     {"bare verbs", [](const perf::Workload&) { return perf::make_absent_server(); },
      [](const perf::Workload& workload, const std::string&) -> std::unique_ptr<perf::ClientRole> {
        return std::make_unique<perf::CallClient<BareCalls>>(workload);
      }}});

}  // namespace
}  // namespace fakeverbs_cost
