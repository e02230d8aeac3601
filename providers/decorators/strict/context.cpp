#include "context.hpp"

#include <string>
#include <utility>

#include "decorators/common/booked_region.hpp"
#include "limits.hpp"
#include "queue.hpp"

namespace weft::strict {
namespace {

class StrictReceiveQueue final : public decorator::ReceiveQueue {
 public:
  PostResult post(const ReceiveRequest* requests, std::size_t count) noexcept override {
    const std::size_t most = few_segments(requests, count);
    PostResult result = inner().post(requests, most);
    if (result.status == Status::ok && most < count) result.status = Status::invalid_argument;
    return result;
  }
};

}  // namespace

StrictContext::StrictContext(std::unique_ptr<provider::Context> inner, std::uint64_t seed)
    : decorator::Context(std::move(inner)), dice_(seed) {
  attributes_.limits = smallest(attributes_.limits);
  // The line that opening logs names the fabric; what this provider cannot be made to do stands there
  // (SEL-4).
  std::string lacks;
  if (!complete_sends_when_matched()) lacks = "sends may complete before their receives";
  if (!hold_writes()) lacks += (lacks.empty() ? "" : " and ") + std::string("writes are not held back");
  if (!lacks.empty()) attributes_.fabric += " (less strict: " + lacks + ")";
}

void StrictContext::taken(const Completion& entry) noexcept {
  if (entry.operation > Operation::flush) return;
  try {
    const auto outstanding = endpoints_.find(entry.endpoint_id);
    if (!outstanding) return;
    // A failed unsignalled operation was not counted.
    auto count = (*outstanding)->load(std::memory_order_relaxed);
    while (count != 0 && !(*outstanding)->compare_exchange_weak(count, count - 1)) {
    }
  } catch (...) {  // no lock to be had: the count stays too high, which makes `again` a little more likely
  }
}

std::unique_ptr<decorator::CompletionQueue> StrictContext::make_queue(std::uint32_t /*capacity*/,
                                                                      provider::QueueEvents& events) {
  return std::make_unique<StrictQueue>(*this, events);
}

std::unique_ptr<decorator::ReceiveQueue> StrictContext::make_receive_queue(
    decorator::CompletionQueue& /*queue*/, std::uint32_t /*depth*/) {
  return std::make_unique<StrictReceiveQueue>();
}

std::unique_ptr<decorator::MemoryRegion> StrictContext::make_region(const RegistrationRequest& request) {
  return std::make_unique<decorator::BookedRegion>(regions_, request);
}

std::unique_ptr<decorator::Endpoint> StrictContext::make_endpoint(const provider::EndpointRequest& request) {
  return std::make_unique<StrictEndpoint>(*this, request);
}

}  // namespace weft::strict
