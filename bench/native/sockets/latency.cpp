// Ping-pong: a message there, a message of the same or another size back.
#include "../../buffers.hpp"
#include "connection.hpp"
#include "roles.hpp"

namespace perf::sockets {
namespace {

// Half a round trip needs the same message in both directions. A full one is a write answered by one byte, or
// a request for a read answered by the bytes.
struct Sizes {
  std::size_t there;
  std::size_t back;
};

constexpr std::size_t read_request_size = 16;
constexpr std::size_t acknowledgement_size = 8;

Sizes sizes_of(const Workload& workload) {
  if (workload.operation == Operation::read) return {read_request_size, workload.size};
  if (workload.level == Level::completed) return {workload.size, acknowledgement_size};
  return {workload.size, workload.size};
}

class LatencyServer final : public ServerRole {
 public:
  explicit LatencyServer(const Workload& workload)
      : sizes_(sizes_of(workload)), incoming_(sizes_.there, 1), outgoing_(sizes_.back, 1) {}

  std::string address() const override { return listener_.address(); }
  void accept() override { connection_ = listener_.accept(); }

  void serve(std::uint64_t operations) override {
    meet_as_server(connection_);
    for (std::uint64_t i = 0; i < operations; ++i) {
      connection_.receive(incoming_.slot(0), sizes_.there);
      check_stamp(incoming_.slot(0), i);
      stamp(outgoing_.slot(0), i);
      connection_.send(outgoing_.slot(0), sizes_.back);
    }
  }

 private:
  Sizes sizes_;
  SlotBuffer incoming_;
  SlotBuffer outgoing_;
  Listener listener_;
  Connection connection_;
};

class LatencyClient final : public ClientRole {
 public:
  LatencyClient(const Workload& workload, const std::string& address)
      : sizes_(sizes_of(workload)),
        outgoing_(sizes_.there, 1),
        incoming_(sizes_.back, 1),
        connection_(connect_to(address)) {}

  std::string fabric() const override { return "loopback"; }

  Slice run(std::uint64_t operations) override {
    RoundTripClock clock(operations);
    meet_as_client(connection_);
    clock.start();
    for (std::uint64_t i = 0; i < operations; ++i) {
      stamp(outgoing_.slot(0), i);
      connection_.send(outgoing_.slot(0), sizes_.there);
      connection_.receive(incoming_.slot(0), sizes_.back);
      check_stamp(incoming_.slot(0), i);
      clock.lap();
    }
    return clock.finish();
  }

 private:
  Sizes sizes_;
  SlotBuffer outgoing_;
  SlotBuffer incoming_;
  Connection connection_;
};

}  // namespace

std::unique_ptr<ServerRole> make_latency_server(const Workload& workload) {
  return std::make_unique<LatencyServer>(workload);
}

std::unique_ptr<ClientRole> make_latency_client(const Workload& workload, const std::string& address) {
  return std::make_unique<LatencyClient>(workload, address);
}

}  // namespace perf::sockets
