// Rate and bandwidth: the loops of the side that starts operations and of the side they go to, the same over
// any link.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "work.hpp"

namespace weft::native {

// Chains of `batch` requests, built once; a post only renews numbers and flags. There are as many chains as
// it takes to visit every slot of the buffer.
template <class Link>
class Chains {
 public:
  using Request = typename Link::Request;

  Chains(const Link& link, const Work& work)
      : batch_(work.batch), count_((link.slot_count() + work.batch - 1) / work.batch) {
    requests_.resize(count_ * batch_);
    places_.resize(count_ * batch_);
    for (std::uint64_t index = 0; index < requests_.size(); ++index)
      link.prepare(requests_[index], places_[index], index);
    for (std::uint64_t first = 0; first < requests_.size(); first += batch_) Link::join(chain(first));
  }

  // The chain whose first request has number `sequence`, a multiple of the batch.
  std::span<Request> chain(std::uint64_t sequence) {
    return {&requests_[sequence / batch_ % count_ * batch_], batch_};
  }

 private:
  std::uint64_t batch_;
  std::uint64_t count_;
  std::vector<Request> requests_;
  std::vector<typename Link::Place> places_;
};

// From the first post to the last completion of `work.operations` operations.
template <class Link>
Measured initiate_throughput(Link& link, const Work& work) {
  Measured measured;
  Chains<Link> chains(link, work);
  const std::uint32_t interval = work.signal_interval();
  std::uint64_t posted = 0;
  std::uint64_t completed = 0;
  std::uint32_t since_signal = 0;
  const auto start = std::chrono::steady_clock::now();
  while (completed < work.operations) {
    while (posted < work.operations && posted - completed + work.batch <= work.depth) {
      const auto chain = chains.chain(posted);
      for (auto& request : chain) {
        // A request's number is how many are done once it is: one completion retires all before it.
        ++posted;
        const bool signal = ++since_signal == interval || posted == work.operations;
        link.mark(request, posted, signal);
        if (signal) {
          since_signal = 0;
          ++measured.signals;
        }
      }
      link.post(chain);
      ++measured.doorbells;
    }
    if (const std::uint64_t number = link.poll_sent(); number != 0) {
      completed = number;
    } else {
      link.idle();
    }
  }
  measured.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return measured;
}

template <class Link>
void answer_throughput(Link& link, const Work& work) {
  if (!consumes_receive(work.operation)) return;
  std::uint32_t used = 0;
  for (std::uint64_t received = 0; received < work.operations;) {
    const std::uint32_t count = link.poll_received();
    if (count == 0) {
      link.idle();
      continue;
    }
    received += count;
    used += count;
    while (used >= Link::receive_chunk) {
      link.post_receives(Link::receive_chunk);
      used -= Link::receive_chunk;
    }
  }
  if (used > 0) link.post_receives(used);
}

}  // namespace weft::native
