// Reads: small requests one way, the bytes the other way, several outstanding.
#include <algorithm>
#include <vector>

#include "../../buffers.hpp"
#include "connection.hpp"
#include "roles.hpp"

namespace perf::sockets {
namespace {

struct ReadRequest {
  std::uint64_t number;
  std::uint64_t length;
};

class ReadServer final : public ServerRole {
 public:
  explicit ReadServer(const Workload& workload)
      : source_(workload.size, workload.depth), requests_(workload.depth) {
    for (std::uint64_t slot = 0; slot < workload.depth; ++slot) stamp(source_.slot(slot), slot);
  }

  std::string address() const override { return listener_.address(); }
  void accept() override { connection_ = listener_.accept(); }

  void serve(std::uint64_t operations) override {
    meet_as_server(connection_);
    auto* bytes = reinterpret_cast<std::byte*>(requests_.data());
    std::size_t held = 0;
    for (std::uint64_t served = 0; served < operations;) {
      held += connection_.receive_some(bytes + held, requests_.size() * sizeof(ReadRequest) - held);
      std::size_t used = 0;
      for (; held - used >= sizeof(ReadRequest); used += sizeof(ReadRequest), ++served) {
        answer(requests_[used / sizeof(ReadRequest)]);
      }
      std::copy(bytes + used, bytes + held, bytes);
      held -= used;
    }
  }

 private:
  void answer(const ReadRequest& request) {
    connection_.send(source_.slot(request.number),
                     std::min<std::size_t>(request.length, source_.slot_size()));
  }

  SlotBuffer source_;
  std::vector<ReadRequest> requests_;
  Listener listener_;
  Connection connection_;
};

class ReadClient final : public ClientRole {
 public:
  ReadClient(const Workload& workload, const std::string& address)
      : target_(workload.size, workload.depth), requests_(workload.depth), connection_(connect_to(address)) {}

  std::string fabric() const override { return "loopback"; }

  Slice run(std::uint64_t operations) override {
    meet_as_client(connection_);
    const std::uint64_t depth = requests_.size();
    const std::uint64_t refill = std::max<std::uint64_t>(depth / 2, 1);
    std::uint64_t asked = 0;
    const auto start = RoundTripClock::Clock::now();
    for (std::uint64_t received = 0; received < operations; ++received) {
      // Half the window at a time: one call for several requests, and the server never runs dry.
      if (asked - received <= depth - refill) {
        const std::uint64_t next = std::min(operations, asked == 0 ? depth : asked + refill);
        ask(asked, next);
        asked = next;
      }
      connection_.receive(target_.slot(received), target_.slot_size());
      check_stamp(target_.slot(received), received % depth);
    }
    const std::chrono::duration<double> elapsed = RoundTripClock::Clock::now() - start;
    return {operations, elapsed.count(), {}};
  }

 private:
  void ask(std::uint64_t from, std::uint64_t to) {
    if (from == to) return;
    for (std::uint64_t number = from; number < to; ++number) {
      stamp(target_.slot(number), not_a_stamp);  // An old answer must not pass for the new one.
      requests_[number - from] = {number, target_.slot_size()};
    }
    connection_.send(requests_.data(), (to - from) * sizeof(ReadRequest));
  }

  SlotBuffer target_;
  std::vector<ReadRequest> requests_;
  Connection connection_;
};

}  // namespace

std::unique_ptr<ServerRole> make_read_server(const Workload& workload) {
  return std::make_unique<ReadServer>(workload);
}

std::unique_ptr<ClientRole> make_read_client(const Workload& workload, const std::string& address) {
  return std::make_unique<ReadClient>(workload, address);
}

}  // namespace perf::sockets
