// Half round trips over one of many endpoints on one queue, another one each time: what idle endpoints cost.
// Each has receives of its own, or all share a queue of them.
#include <array>
#include <chrono>
#include <random>
#include <stdexcept>
#include <vector>
#include <weft/weft.hpp>

#include "buffers.hpp"
#include "weft_roles.hpp"

namespace perf {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t receives_each = 4;
constexpr std::uint32_t receives_shared = 64;
constexpr std::uint32_t connects_at_once = 64;

weft::Context open_context(const std::string& provider) {
  weft::ContextOptions options;
  options.provider = provider;
  return weft::Context::open(options);
}

// Many endpoints to one peer, told apart by their user value.
class Crowd {
 public:
  Crowd(const std::string& provider, const Workload& workload)
      : context_(open_context(provider)),
        queue_(context_.create_completion_queue({.capacity = workload.endpoints * receives_each})),
        incoming_(workload.size, workload.shared_receives
                                     ? receives_shared
                                     : std::uint64_t{workload.endpoints} * receives_each),
        outgoing_(workload.size, 1),
        region_(context_.register_memory(incoming_.bytes(), weft::Access::local_write)),
        endpoints_(workload.endpoints) {
    if (!workload.shared_receives) return;
    shared_ = context_.create_receive_queue({.queue = queue_, .depth = receives_shared});
    for (std::uint64_t slot = 0; slot < receives_shared; ++slot)
      expect_ok(shared_.receive(receive_slot(slot), slot));
  }

  void listen() { listener_ = context_.listen("127.0.0.1:0", {.queue = queue_}); }
  [[nodiscard]] std::string address() const { return listener_.address(); }
  [[nodiscard]] std::size_t size() const { return endpoints_.size(); }
  [[nodiscard]] std::string fabric() const { return "loopback"; }

  void accept() {
    std::uint64_t accepted = 0;
    await(endpoints_.size(), [&] {
      while (auto request = listener_.next()) {
        weft::Endpoint& endpoint = endpoints_.at(accepted) = request->prepare(options(accepted));
        post_receives(endpoint, accepted++);
        request->accept();
      }
    });
  }

  void connect(const std::string& address) {
    std::uint64_t begun = 0;
    await(endpoints_.size(), [&] {
      while (begun < endpoints_.size() && begun - up_ < connects_at_once) {
        endpoints_[begun] = context_.connect(address, options(begun));
        post_receives(endpoints_[begun], begun);
        ++begun;
      }
    });
  }

  void send(std::uint64_t index, std::uint64_t number) {
    stamp(outgoing_.slot(0), number);
    const weft::Segment segment = weft::Segment::inline_bytes(outgoing_.slot(0), outgoing_.slot_size());
    const weft::Status status =
        endpoints_[index].send(segment, 0, weft::Flags::inline_data | weft::Flags::unsignalled);
    if (status != weft::Status::ok) throw std::runtime_error("the message was not taken");
  }

  // The next message, whose receive is posted again; returns whose it was.
  std::uint64_t take(std::uint64_t number) {
    for (;;) {
      for (const weft::Completion& entry : queue_.poll({entries_.data(), 1})) {
        if (entry.operation != weft::Operation::receive || entry.status != weft::Status::ok)
          throw std::runtime_error("an endpoint of the crowd failed");
        check_stamp(incoming_.slot(entry.context), number);
        expect_ok(shared_ ? shared_.receive(receive_slot(entry.context), entry.context)
                          : post_receive(endpoints_[entry.user_value], entry.context));
        return entry.user_value;
      }
    }
  }

 private:
  [[nodiscard]] weft::EndpointOptions options(std::uint64_t index) const {
    weft::EndpointOptions options{.queue = queue_};
    options.user_value = index;
    options.send_depth = receives_each;
    options.shared_receives = shared_;
    if (!shared_) options.receive_depth = receives_each;
    return options;
  }

  [[nodiscard]] weft::Segment receive_slot(std::uint64_t slot) const {
    return region_.slice(incoming_.offset(slot), incoming_.slot_size());
  }
  weft::Status post_receive(weft::Endpoint& endpoint, std::uint64_t slot) {
    return endpoint.receive(receive_slot(slot), slot);
  }
  void post_receives(weft::Endpoint& endpoint, std::uint64_t index) {
    if (shared_) return;
    for (std::uint64_t i = 0; i < receives_each; ++i)
      expect_ok(post_receive(endpoint, index * receives_each + i));
  }
  static void expect_ok(weft::Status status) {
    if (status != weft::Status::ok) throw std::runtime_error("a receive was not taken");
  }

  template <class Step>
  void await(std::size_t count, const Step& step) {
    const auto give_up = std::chrono::steady_clock::now() + 60s;
    while (up_ < count) {
      step();
      for (const weft::Completion& entry : queue_.wait(entries_, 10ms)) {
        if (entry.status != weft::Status::ok) throw std::runtime_error("an endpoint did not come up");
        up_ += entry.operation == weft::Operation::connect ? 1 : 0;
      }
      if (std::chrono::steady_clock::now() > give_up) throw std::runtime_error("the crowd did not connect");
    }
  }

  weft::Context context_;
  weft::CompletionQueue queue_;
  SlotBuffer incoming_;
  SlotBuffer outgoing_;
  weft::MemoryRegion region_;
  weft::ReceiveQueue shared_;  // none: each endpoint has its own
  weft::Listener listener_;
  std::vector<weft::Endpoint> endpoints_;
  std::uint64_t up_ = 0;
  std::array<weft::Completion, 64> entries_{};
};

class CrowdServer final : public ServerRole {
 public:
  CrowdServer(const std::string& provider, const Workload& workload) : crowd_(provider, workload) {
    crowd_.listen();
  }
  std::string address() const override { return crowd_.address(); }
  void accept() override { crowd_.accept(); }
  void serve(std::uint64_t operations) override {
    for (std::uint64_t number = 0; number < operations + meeting_rounds; ++number)
      crowd_.send(crowd_.take(number), number);
  }

 private:
  Crowd crowd_;
};

class CrowdClient final : public ClientRole {
 public:
  CrowdClient(const std::string& provider, const Workload& workload, const std::string& address)
      : crowd_(provider, workload) {
    crowd_.connect(address);
  }
  std::string fabric() const override { return crowd_.fabric(); }
  Slice run(std::uint64_t operations) override {
    std::uniform_int_distribution<std::uint64_t> any(0, crowd_.size() - 1);
    RoundTripClock clock(operations);
    for (std::uint64_t number = 0; number < operations + meeting_rounds; ++number) {
      if (number == meeting_rounds) clock.start();
      crowd_.send(any(random_), number);
      crowd_.take(number);
      if (number >= meeting_rounds) clock.lap();
    }
    return clock.finish();
  }

 private:
  Crowd crowd_;
  std::minstd_rand random_;
};

}  // namespace

std::unique_ptr<ServerRole> make_weft_crowd_server(const std::string& provider, const Workload& workload) {
  return std::make_unique<CrowdServer>(provider, workload);
}

std::unique_ptr<ClientRole> make_weft_crowd_client(const std::string& provider, const Workload& workload,
                                                   const std::string& address) {
  return std::make_unique<CrowdClient>(provider, workload, address);
}

}  // namespace perf
