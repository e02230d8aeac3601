#include <algorithm>
#include <array>
#include <chrono>

#include "measure.hpp"

namespace weft::native {
namespace {

constexpr unsigned int signaled = IBV_SEND_SIGNALED;

constexpr std::size_t poll_batch = 16;

// Chains of `batch` requests, built once; a post only renews numbers and flags. There are as many chains as
// it takes to visit every slot of the buffer.
class Chains {
 public:
  Chains(const Link& link, const Work& work)
      : batch_(work.batch), count_((link.slot_count() + work.batch - 1) / work.batch) {
    requests_.resize(count_ * batch_);
    segments_.resize(count_ * batch_);
    for (std::uint64_t index = 0; index < requests_.size(); ++index) {
      link.prepare(requests_[index], segments_[index], index);
      const bool last = (index + 1) % batch_ == 0;
      requests_[index].next = last ? nullptr : &requests_[index + 1];
    }
  }

  // The chain whose first request has number `sequence`, a multiple of the batch.
  std::span<ibv_send_wr> chain(std::uint64_t sequence) {
    return {&requests_[sequence / batch_ % count_ * batch_], batch_};
  }

 private:
  std::uint64_t batch_;
  std::uint64_t count_;
  std::vector<ibv_send_wr> requests_;
  std::vector<ibv_sge> segments_;
};

}  // namespace

Measured initiate_throughput(Link& link, const Work& work) {
  Measured measured;
  Chains chains(link, work);
  std::array<ibv_wc, poll_batch> completions{};
  const std::uint32_t interval = work.signal_interval();
  std::uint64_t posted = 0;
  std::uint64_t completed = 0;
  std::uint32_t since_signal = 0;
  const auto start = std::chrono::steady_clock::now();
  while (completed < work.operations) {
    while (posted < work.operations && posted - completed + work.batch <= work.depth) {
      const std::span<ibv_send_wr> chain = chains.chain(posted);
      for (ibv_send_wr& request : chain) {
        // A request's number is how many are done once it is: one completion retires all before it.
        request.wr_id = ++posted;
        const bool signal = ++since_signal == interval || posted == work.operations;
        request.send_flags = link.inline_flag() | (signal ? signaled : 0U);
        if (signal) {
          since_signal = 0;
          ++measured.signals;
        }
      }
      link.post(chain.data());
      ++measured.doorbells;
    }
    const int count = link.poll_sends(completions);
    if (count > 0) {
      completed = completions[static_cast<std::size_t>(count) - 1].wr_id;
    } else {
      link.idle();
    }
  }
  measured.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return measured;
}

void answer_throughput(Link& link, const Work& work) {
  if (!consumes_receive(work.operation)) return;
  std::array<ibv_wc, poll_batch> completions{};
  std::uint32_t used = 0;
  for (std::uint64_t received = 0; received < work.operations;) {
    const int count = link.poll_receives(completions);
    if (count == 0) {
      link.idle();
      continue;
    }
    received += static_cast<std::uint64_t>(count);
    used += static_cast<std::uint32_t>(count);
    while (used >= Link::receive_chunk) {
      link.post_receives(Link::receive_chunk);
      used -= Link::receive_chunk;
    }
  }
  if (used > 0) link.post_receives(used);
}

}  // namespace weft::native
