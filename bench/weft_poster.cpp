#include "weft_poster.hpp"

#include <algorithm>

namespace perf {
namespace {

// Completions are asked for a few times per window: often enough that slots come back in time, seldom enough
// that they cost little (perftest asks for one in 100 of 128). One per message when the window is small.
constexpr std::uint32_t signals_per_window = 4;

}  // namespace

BatchPoster::BatchPoster(WeftLink& link, const Workload& workload, weft::Operation operation)
    : link_(link),
      batch_(workload.batch),
      depth_(window(workload)),
      signal_every_(std::max(batch_, depth_ / signals_per_window)),
      source_(workload.size, depth_),
      region_(link.register_buffer(source_)),
      operation_(operation),
      requests_(batch_) {
  for (std::uint32_t slot = 0; slot < depth_; ++slot) {
    segments_.push_back(region_.slice(source_.offset(slot), workload.size));
  }
  for (weft::WorkRequest& request : requests_) request.operation = operation;
}

void BatchPoster::post_batch(std::uint64_t number) {
  if (posted_ + batch_ > depth_) link_.wait_completed(posted_ + batch_ - depth_);
  for (std::uint32_t i = 0; i < batch_; ++i) {
    // Slots go round with what was ever posted, because completions do; the numbers start anew with every
    // slice.
    const std::uint64_t slot = (posted_ + i) % depth_;
    stamp(source_.slot(slot), number + i);
    weft::WorkRequest& request = requests_[i];
    request.segments = {&segments_[slot], 1};
    if (operation_ == weft::Operation::write) request.remote = link_.peer_target(number + i);
    request.context = posted_ + i + 1;
    request.flags = weft::Flags::unsignalled;
  }
  posted_ += batch_;
  unsignalled_ += batch_;
  if (unsignalled_ >= signal_every_ || signal_next_) {
    requests_.back().flags = weft::Flags::none;
    unsignalled_ = 0;
    signal_next_ = false;
  }
  link_.post(requests_);
}

}  // namespace perf
