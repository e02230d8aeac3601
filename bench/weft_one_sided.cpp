// Writes and reads. The server lends its memory, polls, and looks at what was written when told that it is
// over.
#include <algorithm>
#include <vector>

#include "weft_link.hpp"
#include "weft_poster.hpp"
#include "weft_roles.hpp"

namespace perf {
namespace {

LinkPlan one_sided_plan(const std::string& provider, const Workload& workload) {
  LinkPlan plan{.provider = provider};
  plan.send_depth = std::max<std::uint32_t>(plan.send_depth, workload.depth);
  plan.target_size = workload.size;
  plan.target_slots = window(workload);
  return plan;
}

class Target final : public ServerRole {
 public:
  Target(const std::string& provider, const Workload& workload)
      : link_(one_sided_plan(provider, workload)), written_(workload.operation == Operation::write) {
    for (std::uint64_t slot = 0; slot < link_.target().slot_count(); ++slot)
      stamp(link_.target().slot(slot), slot);
    link_.listen();
  }

  std::string address() const override { return link_.address(); }
  void accept() override { link_.accept(); }

  void serve(std::uint64_t operations) override {
    link_.meet_as_server();
    link_.take_word();
    if (written_) check_written(operations);
  }

 private:
  // Each slot holds the last message that belongs there.
  void check_written(std::uint64_t operations) {
    const std::uint64_t slots = link_.target().slot_count();
    for (std::uint64_t number = operations - std::min(operations, slots); number < operations; ++number) {
      check_stamp(link_.target().slot(number), number);
    }
  }

  WeftLink link_;
  bool written_;
};

class WriteClient final : public ClientRole {
 public:
  WriteClient(const std::string& provider, const Workload& workload, const std::string& address)
      : link_(one_sided_plan(provider, workload)),
        poster_(link_, workload, weft::Operation::write),
        times_each_(workload.metric == Metric::latency) {
    link_.connect(address);
  }

  std::string fabric() const override { return link_.fabric(); }

  Slice run(std::uint64_t operations) override {
    link_.meet_as_client();
    Slice slice = times_each_ ? run_one_by_one(operations) : run_stream(operations);
    link_.send_word();
    return slice;
  }

 private:
  Slice run_one_by_one(std::uint64_t operations) {
    RoundTripClock clock(operations);
    clock.start();
    for (std::uint64_t number = 0; number < operations; ++number) {
      poster_.post_batch(number);
      poster_.drain();
      clock.lap();
    }
    return clock.finish();
  }

  Slice run_stream(std::uint64_t operations) {
    const auto start = RoundTripClock::Clock::now();
    for (std::uint64_t number = 0; number < operations; number += poster_.batch()) {
      if (number + poster_.batch() >= operations) poster_.signal_next_batch();
      poster_.post_batch(number);
    }
    poster_.drain();
    const std::chrono::duration<double> elapsed = RoundTripClock::Clock::now() - start;
    return {operations, elapsed.count(), {}};
  }

  WeftLink link_;
  BatchPoster poster_;
  bool times_each_;
};

class ReadClient final : public ClientRole {
 public:
  ReadClient(const std::string& provider, const Workload& workload, const std::string& address)
      : link_(one_sided_plan(provider, workload)),
        times_each_(workload.metric == Metric::latency),
        destination_(workload.size, window(workload)),
        region_(link_.register_buffer(destination_)),
        requests_(window(workload)) {
    for (std::uint64_t slot = 0; slot < requests_.size(); ++slot) {
      segments_.push_back(region_.slice(destination_.offset(slot), workload.size));
    }
    link_.connect(address);
  }

  std::string fabric() const override { return link_.fabric(); }

  Slice run(std::uint64_t operations) override {
    link_.meet_as_client();
    Slice slice = times_each_ ? run_one_by_one(operations) : run_stream(operations);
    link_.send_word();
    return slice;
  }

 private:
  Slice run_one_by_one(std::uint64_t operations) {
    RoundTripClock clock(operations);
    clock.start();
    for (std::uint64_t number = 0; number < operations; ++number) {
      post_reads(number, number + 1);
      take_read(number);
      clock.lap();
    }
    return clock.finish();
  }

  Slice run_stream(std::uint64_t operations) {
    const std::uint64_t depth = requests_.size();
    const std::uint64_t refill = std::max<std::uint64_t>(depth / 2, 1);
    const auto start = RoundTripClock::Clock::now();
    std::uint64_t asked = 0;
    for (std::uint64_t number = 0; number < operations; ++number) {
      // Half the window at a time, as the bare side does.
      if (asked - number <= depth - refill) {
        const std::uint64_t next = std::min(operations, asked == 0 ? depth : asked + refill);
        if (next > asked) post_reads(asked, next);
        asked = next;
      }
      take_read(number);
    }
    const std::chrono::duration<double> elapsed = RoundTripClock::Clock::now() - start;
    return {operations, elapsed.count(), {}};
  }

  void post_reads(std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t number = from; number < to; ++number) {
      const std::uint64_t slot = number % requests_.size();
      stamp(destination_.slot(slot), not_a_stamp);  // What an earlier read left must not pass for this one.
      weft::WorkRequest& request = requests_[number - from];
      request.operation = weft::Operation::read;
      request.segments = {&segments_[slot], 1};
      request.remote = link_.peer_target(slot);
      request.context = ++posted_;
    }
    link_.post({requests_.data(), to - from});
  }

  // Contexts ascend over all slices, numbers within one.
  void take_read(std::uint64_t number) {
    link_.wait_completed(++taken_);
    check_stamp(destination_.slot(number), number % requests_.size());
  }

  WeftLink link_;
  bool times_each_;
  SlotBuffer destination_;
  weft::MemoryRegion region_;
  std::vector<weft::Segment> segments_;
  std::vector<weft::WorkRequest> requests_;
  std::uint64_t posted_ = 0;
  std::uint64_t taken_ = 0;
};

}  // namespace

std::unique_ptr<ServerRole> make_weft_target(const std::string& provider, const Workload& workload) {
  return std::make_unique<Target>(provider, workload);
}

std::unique_ptr<ClientRole> make_weft_write_client(const std::string& provider, const Workload& workload,
                                                   const std::string& address) {
  return std::make_unique<WriteClient>(provider, workload, address);
}

std::unique_ptr<ClientRole> make_weft_read_client(const std::string& provider, const Workload& workload,
                                                  const std::string& address) {
  return std::make_unique<ReadClient>(provider, workload, address);
}

}  // namespace perf
