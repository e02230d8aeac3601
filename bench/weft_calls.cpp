// What weft's calls cost their caller, where the fabric is done within the call.
#include <array>
#include <cstddef>
#include <stdexcept>
#include <vector>
#include <weft/weft.hpp>

#include "call_client.hpp"
#include "instructions/pair.hpp"
#include "weft_roles.hpp"

namespace perf {
namespace {

class WeftCalls {
 public:
  WeftCalls(const Workload& workload, const std::string& provider)
      : pair_({provider, workload.single ? weft::ThreadMode::single : weft::ThreadMode::safe}),
        requests_(posted_at_once(workload)) {
    const bool small = workload.size == small_call;
    segment_ =
        small ? weft::Segment::inline_bytes(bytes_.data(), bytes_.size()) : pair_.source(workload.size);
    for (weft::WorkRequest& request : requests_) {
      request.operation =
          workload.operation == Operation::send ? weft::Operation::send : weft::Operation::write;
      request.flags = small ? weft::Flags::inline_data | weft::Flags::unsignalled : weft::Flags::none;
      request.segments = {&segment_, 1};
      request.remote = pair_.target();
    }
  }

  [[nodiscard]] static std::string fabric() { return "null"; }
  void post() {
    if (pair_.client().post(requests_).accepted != requests_.size())
      throw std::runtime_error("a request was refused");
  }
  std::size_t poll(std::size_t room) {
    const auto polled = pair_.client_queue().poll({entries_.data(), room});
    for (const weft::Completion& entry : polled) {
      if (entry.status != weft::Status::ok) throw std::runtime_error("an operation failed");
    }
    return polled.size();
  }

 private:
  instructions::Pair pair_;
  std::array<std::byte, small_call> bytes_{};
  weft::Segment segment_;
  std::vector<weft::WorkRequest> requests_;
  std::array<weft::Completion, 16> entries_{};
};

}  // namespace

std::unique_ptr<ClientRole> make_weft_caller(const std::string& provider, const Workload& workload) {
  return std::make_unique<CallClient<WeftCalls>>(workload, provider);
}

}  // namespace perf
