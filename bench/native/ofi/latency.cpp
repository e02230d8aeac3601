// Ping-pong, with the next receive posted before the answer can come.
#include <optional>

#include "pair.hpp"
#include "roles.hpp"

namespace perf::ofi {
namespace {

class PingPong final : public Half {
 public:
  PingPong(const Workload& workload, const Fabric& fabric)
      : Half(fabric),
        writes_(workload.operation == perf::Operation::write),
        outgoing_(workload.size, 1),
        incoming_(workload.size, 1),
        outgoing_memory_(*this, outgoing_.bytes()),
        incoming_memory_(*this, incoming_.bytes()) {}

  // After both are connected: where the peer's writes go.
  void exchange(bool first) {
    if (!writes_) return;
    if (first) tell(incoming_memory_.key());
    target_ = RemoteMemory::from(hear());
    if (!first) tell(incoming_memory_.key());
  }
  void expect() {
    if (writes_) {
      receive(told_.slot(0), told_.slot_size(), told_memory_, 0);
    } else {
      receive(incoming_.slot(0), incoming_.slot_size(), incoming_memory_, 0);
    }
  }
  void ping(std::uint64_t number) {
    stamp(outgoing_.slot(0), number);
    if (writes_) {
      write(outgoing_.slot(0), outgoing_.slot_size(), outgoing_memory_, target_.address, target_.key);
      wait_for_all();
      send(outgoing_.slot(0), 1, outgoing_memory_);
    } else {
      send(outgoing_.slot(0), outgoing_.slot_size(), outgoing_memory_);
    }
    wait_for_all();
  }
  void pong(std::uint64_t number) {
    while (!arrived_) progress();
    arrived_ = false;
    check_stamp(incoming_.slot(0), number);
  }

 protected:
  void on_received(std::uint64_t number, std::size_t length) override {
    if (number == 0) {
      arrived_ = true;
    } else {
      Half::on_received(number, length);
    }
  }

 private:
  bool writes_;
  bool arrived_ = false;
  SlotBuffer outgoing_;
  SlotBuffer incoming_;
  SlotBuffer told_{64, 1};
  Memory outgoing_memory_;
  Memory incoming_memory_;
  Memory told_memory_{*this, told_.bytes()};
  RemoteMemory target_;
};

class LatencyServer final : public ServerRole {
 public:
  LatencyServer(const Workload& workload, const Fabric& fabric) : game_(workload, fabric) {}
  std::string address() const override { return to_text(game_.address()); }
  void accept() override {
    accept_peer(game_);
    game_.exchange(false);
  }
  void serve(std::uint64_t operations) override {
    meet(game_, false);
    game_.expect();
    for (std::uint64_t i = 0; i < operations; ++i) {
      game_.pong(i);
      if (i + 1 != operations) game_.expect();
      game_.ping(i);
    }
  }

 private:
  PingPong game_;
};

class LatencyClient final : public ClientRole {
 public:
  LatencyClient(const Workload& workload, const Fabric& fabric, const std::string& address)
      : game_(workload, fabric) {
    reach_peer(game_, address);
    game_.exchange(true);
  }
  std::string fabric() const override { return game_.fabric_name(); }
  Slice run(std::uint64_t operations) override {
    RoundTripClock clock(operations);
    meet(game_, true);
    clock.start();
    for (std::uint64_t i = 0; i < operations; ++i) {
      game_.expect();
      game_.ping(i);
      game_.pong(i);
      clock.lap();
    }
    return clock.finish();
  }

 private:
  PingPong game_;
};

}  // namespace

std::unique_ptr<ServerRole> make_latency_server(const Workload& workload, const Fabric& fabric) {
  return std::make_unique<LatencyServer>(workload, fabric);
}

std::unique_ptr<ClientRole> make_latency_client(const Workload& workload, const Fabric& fabric,
                                                const std::string& address) {
  return std::make_unique<LatencyClient>(workload, fabric, address);
}

}  // namespace perf::ofi
