// Ping-pong. A write is put, flushed, and then told of: UCX orders a put and a message in no other way.
#include <optional>

#include "pair.hpp"
#include "roles.hpp"

namespace perf::ucx {
namespace {

class PingPong {
 public:
  PingPong(const Workload& workload, Lanes lanes)
      : half_(lanes),
        writes_(workload.operation == Operation::write),
        outgoing_(workload.size, 1),
        incoming_(workload.size, 1) {
    if (writes_) memory_.emplace(half_, incoming_.bytes());
  }

  [[nodiscard]] Half& half() { return half_; }

  // After both are connected: where the peer's writes go.
  void exchange(bool first) {
    if (!writes_) return;
    const std::uint64_t expected = half_.arrived() + 1;
    if (first) half_.tell(memory_->description());
    half_.await(expected);
    target_.emplace(half_, half_.last());
    if (!first) half_.tell(memory_->description());
  }

  void ping(std::uint64_t number) {
    stamp(outgoing_.slot(0), number);
    if (writes_) {
      half_.put(outgoing_.slot(0), outgoing_.slot_size(), target_->address(), target_->key());
      half_.flush();
      half_.wait_for_all();
      half_.send(&told_, 1);
    } else {
      half_.send(outgoing_.slot(0), outgoing_.slot_size());
    }
    half_.wait_for_all();
  }
  void pong(std::uint64_t arrivals, std::uint64_t number) {
    half_.await(arrivals);
    check_stamp(writes_ ? incoming_.slot(0) : half_.last().data(), number);
  }

 private:
  Half half_;
  bool writes_;
  std::byte told_{};
  SlotBuffer outgoing_;
  SlotBuffer incoming_;
  std::optional<Memory> memory_;
  std::optional<RemoteMemory> target_;
};

class LatencyServer final : public ServerRole {
 public:
  LatencyServer(const Workload& workload, Lanes lanes) : game_(workload, lanes) {}
  std::string address() const override { return to_text(game_.half().worker_address()); }
  void accept() override {
    accept_peer(game_.half());
    game_.exchange(false);
  }
  void serve(std::uint64_t operations) override {
    std::uint64_t arrivals = meet(game_.half(), false);
    for (std::uint64_t i = 0; i < operations; ++i) {
      game_.pong(++arrivals, i);
      game_.ping(i);
    }
  }

 private:
  mutable PingPong game_;
};

class LatencyClient final : public ClientRole {
 public:
  LatencyClient(const Workload& workload, Lanes lanes, const std::string& address) : game_(workload, lanes) {
    reach_peer(game_.half(), address);
    game_.exchange(true);
  }
  std::string fabric() const override { return game_.half().transports(); }
  Slice run(std::uint64_t operations) override {
    RoundTripClock clock(operations);
    std::uint64_t arrivals = meet(game_.half(), true);
    clock.start();
    for (std::uint64_t i = 0; i < operations; ++i) {
      game_.ping(i);
      game_.pong(++arrivals, i);
      clock.lap();
    }
    return clock.finish();
  }

 private:
  mutable PingPong game_;
};

}  // namespace

std::unique_ptr<ServerRole> make_latency_server(const Workload& workload, Lanes lanes) {
  return std::make_unique<LatencyServer>(workload, lanes);
}

std::unique_ptr<ClientRole> make_latency_client(const Workload& workload, Lanes lanes,
                                                const std::string& address) {
  return std::make_unique<LatencyClient>(workload, lanes, address);
}

}  // namespace perf::ucx
