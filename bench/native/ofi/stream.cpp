// Messages one way at full speed, at most `depth` of them unfinished, received where they belong. Where a row
// lets the bare side coalesce, a batch is one message.
#include <algorithm>

#include "pair.hpp"
#include "roles.hpp"

namespace perf::ofi {
namespace {

std::uint32_t messages_per_send(const Workload& workload) {
  return workload.native_kind == NativeKind::coalescing ? workload.batch : 1;
}

// Receives in the slots, one for each send of the peer.
class Taker final : public Half {
 public:
  Taker(const Workload& workload, const Fabric& fabric)
      : Half(fabric),
        per_send_(messages_per_send(workload)),
        slots_(workload.size, window(workload)),
        memory_(*this, slots_.bytes()) {}

  void begin(std::uint64_t operations) {
    wanted_ = operations / per_send_;
    taken_ = posted_ = 0;
    const std::uint64_t places = std::max<std::uint64_t>(slots_.slot_count() / per_send_, 1);
    while (posted_ < std::min(wanted_, places)) post();
  }
  [[nodiscard]] bool busy() const { return taken_ < wanted_; }

 protected:
  void on_received(std::uint64_t number, std::size_t length) override {
    if (!busy() || number >= wanted_) return Half::on_received(number, length);
    for (std::uint64_t i = 0; i < per_send_; ++i)
      check_stamp(slots_.slot(number * per_send_ + i), number * per_send_ + i);
    ++taken_;
    if (posted_ < wanted_) post();
  }

 private:
  // Large messages may end in any order; a place is free again when its own did, and the next receive goes
  // there.
  void post() {
    receive(slots_.slot(posted_ * per_send_), per_send_ * slots_.slot_size(), memory_, posted_);
    ++posted_;
  }

  std::uint32_t per_send_;
  SlotBuffer slots_;
  Memory memory_;
  std::uint64_t wanted_ = 0;
  std::uint64_t taken_ = 0;
  std::uint64_t posted_ = 0;
};

class StreamServer final : public ServerRole {
 public:
  StreamServer(const Workload& workload, const Fabric& fabric) : taker_(workload, fabric) {}
  std::string address() const override { return to_text(taker_.address()); }
  void accept() override { accept_peer(taker_); }
  void serve(std::uint64_t operations) override {
    meet(taker_, false);
    taker_.begin(operations);
    const std::byte ready{};
    taker_.tell({&ready, 1});
    while (taker_.busy()) taker_.progress();
    taker_.tell({&ready, 1});
  }

 private:
  Taker taker_;
};

class StreamClient final : public ClientRole {
 public:
  StreamClient(const Workload& workload, const Fabric& fabric, const std::string& address)
      : half_(fabric),
        per_send_(messages_per_send(workload)),
        slots_(workload.size, window(workload)),
        memory_(half_, slots_.bytes()) {
    most_sends_ = std::max<std::uint64_t>(slots_.slot_count() / per_send_, 1);
    reach_peer(half_, address);
  }
  std::string fabric() const override { return half_.fabric_name(); }

  Slice run(std::uint64_t operations) override {
    meet(half_, true);
    static_cast<void>(half_.hear());  // it is ready
    const auto start = RoundTripClock::Clock::now();
    for (std::uint64_t number = 0; number < operations; number += per_send_) {
      while (half_.outstanding() >= most_sends_) half_.progress();
      for (std::uint32_t i = 0; i < per_send_; ++i) stamp(slots_.slot(number + i), number + i);
      half_.send(slots_.slot(number), per_send_ * slots_.slot_size(), memory_);
    }
    static_cast<void>(half_.hear());
    const std::chrono::duration<double> elapsed = RoundTripClock::Clock::now() - start;
    half_.wait_for_all();
    return {operations, elapsed.count(), {}};
  }

 private:
  Half half_;
  std::uint32_t per_send_;
  SlotBuffer slots_;
  Memory memory_;
  std::uint64_t most_sends_ = 1;
};

}  // namespace

std::unique_ptr<ServerRole> make_stream_server(const Workload& workload, const Fabric& fabric) {
  return std::make_unique<StreamServer>(workload, fabric);
}

std::unique_ptr<ClientRole> make_stream_client(const Workload& workload, const Fabric& fabric,
                                               const std::string& address) {
  return std::make_unique<StreamClient>(workload, fabric, address);
}

}  // namespace perf::ofi
