// One-sided work whose end the initiator knows: puts, where a flush covers half of what may be outstanding,
// and gets. The target only moves UCX on.
#include <algorithm>
#include <optional>

#include "pair.hpp"
#include "roles.hpp"

namespace perf::ucx {
namespace {

class MemoryServer final : public ServerRole {
 public:
  MemoryServer(const Workload& workload, Lanes lanes)
      : half_(lanes),
        reads_(workload.operation == Operation::read),
        slots_(workload.size, window(workload)),
        memory_(half_, slots_.bytes()) {
    for (std::uint64_t slot = 0; slot < slots_.slot_count(); ++slot) stamp(slots_.slot(slot), slot);
  }
  std::string address() const override { return to_text(half_.worker_address()); }
  void accept() override {
    accept_peer(half_);
    half_.tell(memory_.description());
  }
  void serve(std::uint64_t operations) override {
    const std::uint64_t before = meet(half_, false);
    half_.await(before + 1);  // the client is done
    if (reads_) return;
    const std::uint64_t slots = slots_.slot_count();
    for (std::uint64_t number = operations - std::min(operations, slots); number < operations; ++number)
      check_stamp(slots_.slot(number), number);
  }

 private:
  mutable Half half_;
  bool reads_;
  SlotBuffer slots_;
  Memory memory_;
};

class MemoryClient final : public ClientRole {
 public:
  MemoryClient(const Workload& workload, Lanes lanes, const std::string& address)
      : half_(lanes),
        reads_(workload.operation == Operation::read),
        latency_(workload.metric == Metric::latency),
        slots_(workload.size, window(workload)),
        memory_(half_, slots_.bytes()) {
    reach_peer(half_, address);
    half_.await(2);  // the second message tells of its memory
    target_.emplace(half_, half_.last());
  }
  std::string fabric() const override { return half_.transports(); }

  Slice run(std::uint64_t operations) override {
    meet(half_, true);
    RoundTripClock clock(latency_ ? operations : 0);
    if (latency_) clock.start();
    const auto start = RoundTripClock::Clock::now();
    if (latency_) {
      for (std::uint64_t number = 0; number < operations; ++number) {
        start_one(number);
        if (!reads_) half_.flush();
        half_.wait_for_all();
        if (reads_) check_stamp(slots_.slot(number), number % slots_.slot_count());
        clock.lap();
      }
    } else {
      run_all(operations);
    }
    const std::chrono::duration<double> elapsed = RoundTripClock::Clock::now() - start;
    const std::byte done{};
    half_.tell({&done, 1});
    if (latency_) return clock.finish();
    return {operations, elapsed.count(), {}};
  }

 private:
  void start_one(std::uint64_t number) {
    std::byte* const slot = slots_.slot(number);
    const std::uint64_t remote = target_->address() + slots_.offset(number);
    if (reads_) {
      stamp(slot, not_a_stamp);
      half_.get(slot, slots_.slot_size(), remote, target_->key());
    } else {
      stamp(slot, number);
      half_.put(slot, slots_.slot_size(), remote, target_->key());
    }
  }

  // While one half of the window is flushed the other is filled.
  void run_all(std::uint64_t operations) {
    const std::uint64_t group = std::max<std::uint64_t>(slots_.slot_count() / 2, 1);
    const std::uint64_t before = half_.flushed();
    std::uint64_t checked = 0;
    std::uint64_t groups = 0;
    for (std::uint64_t number = 0; number < operations;) {
      const std::uint64_t end = std::min(operations, number + group);
      for (; number < end; ++number) start_one(number);
      half_.flush();
      ++groups;
      while (half_.flushed() - before + 1 < groups) half_.progress();
      if (groups > 1) check_read(checked, checked + group);
      if (groups > 1) checked += group;
    }
    half_.wait_for_all();
    check_read(checked, operations);
  }

  void check_read(std::uint64_t from, std::uint64_t to) {
    if (!reads_) return;
    for (std::uint64_t number = from; number < to; ++number)
      check_stamp(slots_.slot(number), number % slots_.slot_count());
  }

  Half half_;
  bool reads_;
  bool latency_;
  SlotBuffer slots_;
  Memory memory_;
  std::optional<RemoteMemory> target_;
};

}  // namespace

std::unique_ptr<ServerRole> make_memory_server(const Workload& workload, Lanes lanes) {
  return std::make_unique<MemoryServer>(workload, lanes);
}

std::unique_ptr<ClientRole> make_memory_client(const Workload& workload, Lanes lanes,
                                               const std::string& address) {
  return std::make_unique<MemoryClient>(workload, lanes, address);
}

}  // namespace perf::ucx
