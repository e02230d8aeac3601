// Half round trips: sends, or writes with immediate, there and back.
#include <algorithm>

#include "weft_link.hpp"
#include "weft_roles.hpp"

namespace perf {
namespace {

// Receives for a ping-pong: plenty, but not gigabytes of them.
std::uint32_t ping_receives(std::size_t size) {
  constexpr std::size_t most_memory = 4 * 1024 * 1024;
  return static_cast<std::uint32_t>(std::clamp<std::size_t>(most_memory / size, 4, 128));
}

LinkPlan ping_plan(const std::string& provider, const Workload& workload) {
  LinkPlan plan{.provider = provider};
  plan.receive_slots = ping_receives(workload.size);
  plan.receive_size = workload.size;
  plan.target_size = workload.operation == Operation::write ? workload.size : 0;
  return plan;
}

// One end of the ping-pong: both ends do the same, one of them first.
class Pinger {
 public:
  Pinger(const std::string& provider, const Workload& workload)
      : link_(ping_plan(provider, workload)),
        outgoing_(workload.size, 1),
        region_(link_.register_buffer(outgoing_)),
        writes_(workload.operation == Operation::write) {}

  WeftLink& link() { return link_; }
  const WeftLink& link() const { return link_; }

  // To be called once connected.
  void prepare() {
    request_.operation = writes_ ? weft::Operation::write_with_immediate : weft::Operation::send;
    if (writes_) request_.remote = link_.peer_target(0);
    inline_ = link_.can_inline(outgoing_.slot_size());
    if (inline_) {
      segment_ = weft::Segment::inline_bytes(outgoing_.slot(0), outgoing_.slot_size());
      request_.flags = weft::Flags::inline_data | weft::Flags::unsignalled;
    } else {
      segment_ = region_.whole();
    }
    request_.segments = {&segment_, 1};
  }

  void send(std::uint64_t number) {
    // The buffer may be written again once the send before is complete; inline, it always may.
    if (!inline_) link_.wait_completed(posted_);
    stamp(outgoing_.slot(0), number);
    request_.context = ++posted_;
    request_.immediate = static_cast<std::uint32_t>(number);
    link_.post({&request_, 1});
  }

  void take(std::uint64_t number) {
    const std::byte* message = link_.take_message();
    check_stamp(writes_ ? link_.target().slot(0) : message, number);
  }

 private:
  WeftLink link_;
  SlotBuffer outgoing_;
  weft::MemoryRegion region_;
  weft::Segment segment_;
  weft::WorkRequest request_;
  std::uint64_t posted_ = 0;
  bool writes_;
  bool inline_ = false;
};

class PingServer final : public ServerRole {
 public:
  PingServer(const std::string& provider, const Workload& workload) : pinger_(provider, workload) {
    pinger_.link().listen();
  }

  std::string address() const override { return pinger_.link().address(); }

  void accept() override {
    pinger_.link().accept();
    pinger_.prepare();
  }

  void serve(std::uint64_t operations) override {
    pinger_.link().meet_as_server();
    for (std::uint64_t number = 0; number < operations; ++number) {
      pinger_.take(number);
      pinger_.send(number);
      pinger_.link().recycle();
    }
  }

 private:
  Pinger pinger_;
};

class PingClient final : public ClientRole {
 public:
  PingClient(const std::string& provider, const Workload& workload, const std::string& address)
      : pinger_(provider, workload) {
    pinger_.link().connect(address);
    pinger_.prepare();
  }

  std::string fabric() const override { return pinger_.link().fabric(); }

  Slice run(std::uint64_t operations) override {
    RoundTripClock clock(operations);
    pinger_.link().meet_as_client();
    clock.start();
    for (std::uint64_t number = 0; number < operations; ++number) {
      pinger_.send(number);
      pinger_.link().recycle();
      pinger_.take(number);
      clock.lap();
    }
    return clock.finish();
  }

 private:
  Pinger pinger_;
};

}  // namespace

std::unique_ptr<ServerRole> make_weft_ping_server(const std::string& provider, const Workload& workload) {
  return std::make_unique<PingServer>(provider, workload);
}

std::unique_ptr<ClientRole> make_weft_ping_client(const std::string& provider, const Workload& workload,
                                                  const std::string& address) {
  return std::make_unique<PingClient>(provider, workload, address);
}

}  // namespace perf
