// One-sided work whose end the initiator knows. The target only moves libfabric on.
#include <algorithm>

#include "pair.hpp"
#include "roles.hpp"

namespace perf::ofi {
namespace {

class MemoryServer final : public ServerRole {
 public:
  MemoryServer(const Workload& workload, const Fabric& fabric)
      : half_(fabric),
        reads_(workload.operation == perf::Operation::read),
        slots_(workload.size, window(workload)),
        memory_(half_, slots_.bytes()) {
    for (std::uint64_t slot = 0; slot < slots_.slot_count(); ++slot) stamp(slots_.slot(slot), slot);
  }
  std::string address() const override { return to_text(half_.address()); }
  void accept() override {
    accept_peer(half_);
    half_.tell(memory_.key());
  }
  void serve(std::uint64_t operations) override {
    meet(half_, false);
    static_cast<void>(half_.hear());  // the client is done
    if (reads_) return;
    const std::uint64_t slots = slots_.slot_count();
    for (std::uint64_t number = operations - std::min(operations, slots); number < operations; ++number)
      check_stamp(slots_.slot(number), number);
  }

 private:
  Half half_;
  bool reads_;
  SlotBuffer slots_;
  Memory memory_;
};

class MemoryClient final : public ClientRole {
 public:
  MemoryClient(const Workload& workload, const Fabric& fabric, const std::string& address)
      : half_(fabric),
        reads_(workload.operation == perf::Operation::read),
        latency_(workload.metric == Metric::latency),
        slots_(workload.size, window(workload)),
        memory_(half_, slots_.bytes()) {
    reach_peer(half_, address);
    target_ = RemoteMemory::from(half_.hear());
  }
  std::string fabric() const override { return half_.fabric_name(); }

  Slice run(std::uint64_t operations) override {
    meet(half_, true);
    RoundTripClock clock(latency_ ? operations : 0);
    if (latency_) clock.start();
    const auto start = RoundTripClock::Clock::now();
    const std::uint64_t group = latency_ ? 1 : slots_.slot_count();
    for (std::uint64_t number = 0; number < operations; number += group) {
      const std::uint64_t end = std::min(operations, number + group);
      for (std::uint64_t at = number; at < end; ++at) start_one(at);
      half_.wait_for_all();
      for (std::uint64_t at = number; reads_ && at < end; ++at)
        check_stamp(slots_.slot(at), at % slots_.slot_count());
      if (latency_) clock.lap();
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
    const std::uint64_t remote = target_.address + slots_.offset(number);
    stamp(slot, reads_ ? not_a_stamp : number);
    if (reads_) {
      half_.read(slot, slots_.slot_size(), memory_, remote, target_.key);
    } else {
      half_.write(slot, slots_.slot_size(), memory_, remote, target_.key);
    }
  }

  Half half_;
  bool reads_;
  bool latency_;
  SlotBuffer slots_;
  Memory memory_;
  RemoteMemory target_;
};

}  // namespace

std::unique_ptr<ServerRole> make_memory_server(const Workload& workload, const Fabric& fabric) {
  return std::make_unique<MemoryServer>(workload, fabric);
}

std::unique_ptr<ClientRole> make_memory_client(const Workload& workload, const Fabric& fabric,
                                               const std::string& address) {
  return std::make_unique<MemoryClient>(workload, fabric, address);
}

}  // namespace perf::ofi
