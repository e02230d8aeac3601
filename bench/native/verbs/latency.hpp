// Latency: the loops of the side that starts operations and of the side they go to, the same over any link.
// Half a round trip for operations both sides take part in (as perftest counts), the whole of it for the
// others.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ticks.hpp"
#include "work.hpp"

namespace weft::native {

// The first operations fault pages in and warm caches: they are made but not counted.
inline std::uint64_t warm_up(const Work& work) { return std::min<std::uint64_t>(work.operations / 10, 100); }

// Posts one request at a time, asking for a completion now and then and taking it when nothing is urgent.
template <class Link>
class SingleSender {
 public:
  SingleSender(Link& link, const Work& work, std::uint64_t total)
      : link_(link), interval_(work.signal_interval()), total_(total) {
    link_.prepare(request_, place_, 0);
  }

  void post() {
    ++posted_;
    const bool signal = posted_ % interval_ == 0 || posted_ == total_;
    link_.mark(request_, posted_, signal);
    if (signal) {
      ++signals_;
      signalled_ = posted_;
    }
    link_.post({&request_, 1});
  }
  // Called after a post, while the message is under way.
  void take_completions() {
    if (signalled_ != taken_) taken_ = std::max(taken_, link_.poll_sent());
  }
  void drain() {
    while (signalled_ != taken_) {
      take_completions();
      link_.idle();
    }
  }
  [[nodiscard]] std::uint64_t doorbells() const { return posted_; }
  [[nodiscard]] std::uint64_t signals() const { return signals_; }

 private:
  Link& link_;
  std::uint64_t interval_;
  std::uint64_t total_;
  std::uint64_t posted_ = 0;
  std::uint64_t signals_ = 0;
  std::uint64_t signalled_ = 0;  // the last of them
  std::uint64_t taken_ = 0;      // the last one whose completion was taken
  typename Link::Request request_{};
  typename Link::Place place_{};
};

// Waits for the peer's messages; gives receives back in chunks, after the answer has gone.
template <class Link>
class MessageWaiter {
 public:
  explicit MessageWaiter(Link& link) : link_(link) {}

  void wait() {
    link_.wait_receive();
    ++used_;
  }
  void give_back() {
    if (used_ < Link::receive_chunk) return;
    link_.post_receives(Link::receive_chunk);
    used_ = 0;
  }
  void give_back_all() {
    if (used_ > 0) link_.post_receives(used_);
    used_ = 0;
  }

 private:
  Link& link_;
  std::uint32_t used_ = 0;
};

// A plain write shows itself only in memory: each carries a number in its last byte that differs from the one
// before.
template <class Link>
class WriteWaiter {
 public:
  WriteWaiter(Link& link, const Work& work)
      : link_(link), mark_(&link.target()[work.size - 1]), source_(&link.source()[work.size - 1]) {}

  static std::uint8_t number(std::uint64_t sequence) { return static_cast<std::uint8_t>(sequence % 255 + 1); }
  void stamp(std::uint64_t sequence) { *source_ = number(sequence); }
  void wait(std::uint64_t sequence) {
    while (*mark_ != number(sequence)) link_.idle();
  }
  // Makes ready for the next run. Not at its start: the peer's first write may be there before we are.
  void clear() { *mark_ = 0; }

 private:
  Link& link_;
  volatile std::uint8_t* mark_;
  std::uint8_t* source_;
};

inline void keep_time(std::vector<double>& spans, std::uint64_t sequence, std::uint64_t warm,
                      std::uint64_t span) {
  if (sequence >= warm) spans.push_back(static_cast<double>(span));
}

template <class Link>
Measured initiate_latency(Link& link, const Work& work) {
  const std::uint64_t warm = warm_up(work);
  const std::uint64_t total = warm + work.operations;
  Measured measured;
  measured.latencies_us.reserve(work.operations);
  SingleSender<Link> sender(link, work, total);
  const TickScale scale;
  if (consumes_receive(work.operation)) {
    MessageWaiter<Link> waiter(link);
    for (std::uint64_t sequence = 0; sequence < total; ++sequence) {
      const std::uint64_t start = ticks();
      sender.post();
      sender.take_completions();
      waiter.wait();
      keep_time(measured.latencies_us, sequence, warm, ticks() - start);
      waiter.give_back();
    }
    waiter.give_back_all();
  } else if (work.operation == Operation::write) {
    WriteWaiter<Link> waiter(link, work);
    for (std::uint64_t sequence = 0; sequence < total; ++sequence) {
      waiter.stamp(sequence);
      const std::uint64_t start = ticks();
      sender.post();
      sender.take_completions();
      waiter.wait(sequence);
      keep_time(measured.latencies_us, sequence, warm, ticks() - start);
    }
    waiter.clear();
  } else {
    typename Link::Request request{};
    typename Link::Place place{};
    link.prepare(request, place, 0);
    for (std::uint64_t sequence = 0; sequence < total; ++sequence) {
      const std::uint64_t start = ticks();
      link.mark(request, sequence + 1, true);
      link.post({&request, 1});
      while (link.poll_sent() == 0) link.idle();
      keep_time(measured.latencies_us, sequence, warm, ticks() - start);
    }
    measured.doorbells = measured.signals = total;
  }
  const double factor = scale.microseconds_per_tick() / (answers_itself(work.operation) ? 1 : 2);
  for (double& span : measured.latencies_us) span *= factor;
  sender.drain();
  measured.doorbells += sender.doorbells();
  measured.signals += sender.signals();
  return measured;
}

template <class Link>
void answer_latency(Link& link, const Work& work) {
  if (answers_itself(work.operation)) return;
  const std::uint64_t total = warm_up(work) + work.operations;
  SingleSender<Link> sender(link, work, total);
  if (consumes_receive(work.operation)) {
    MessageWaiter<Link> waiter(link);
    for (std::uint64_t sequence = 0; sequence < total; ++sequence) {
      waiter.wait();
      sender.post();
      sender.take_completions();
      waiter.give_back();
    }
    waiter.give_back_all();
  } else {
    WriteWaiter<Link> waiter(link, work);
    for (std::uint64_t sequence = 0; sequence < total; ++sequence) {
      waiter.wait(sequence);
      waiter.stamp(sequence);
      sender.post();
      sender.take_completions();
    }
    waiter.clear();
  }
  sender.drain();
}

}  // namespace weft::native
