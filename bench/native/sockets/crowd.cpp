// Ping-pong over one of many connections, another one each time: found by epoll, as a server of many does it.
#include <sys/epoll.h>

#include <array>
#include <cerrno>
#include <random>
#include <vector>

#include "../../buffers.hpp"
#include "connection.hpp"
#include "roles.hpp"

namespace perf::sockets {
namespace {

class Crowd {
 public:
  explicit Crowd(const Workload& workload)
      : epoll_(::epoll_create1(EPOLL_CLOEXEC)), incoming_(workload.size, 1), outgoing_(workload.size, 1) {
    if (epoll_.number() < 0) throw_socket_error("epoll_create1", errno);
  }

  void add(Connection connection) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = connections_.size();
    if (::epoll_ctl(epoll_.number(), EPOLL_CTL_ADD, connection.number(), &event) != 0)
      throw_socket_error("epoll_ctl", errno);
    connections_.push_back(std::move(connection));
  }
  [[nodiscard]] std::size_t size() const { return connections_.size(); }

  void send(std::uint64_t index, std::uint64_t number) {
    stamp(outgoing_.slot(0), number);
    connections_[index].send(outgoing_.slot(0), outgoing_.slot_size());
  }

  // Spins until a connection is readable and takes its message; returns which it was.
  std::uint64_t take(std::uint64_t number) {
    epoll_event event{};
    for (;;) {
      const int ready = ::epoll_wait(epoll_.number(), &event, 1, 0);
      if (ready == 1) break;
      if (ready < 0 && errno != EINTR) throw_socket_error("epoll_wait", errno);
    }
    connections_[event.data.u64].receive(incoming_.slot(0), incoming_.slot_size());
    check_stamp(incoming_.slot(0), number);
    return event.data.u64;
  }

 private:
  Descriptor epoll_;
  SlotBuffer incoming_;
  SlotBuffer outgoing_;
  std::vector<Connection> connections_;
};

class CrowdServer final : public ServerRole {
 public:
  explicit CrowdServer(const Workload& workload) : endpoints_(workload.endpoints), crowd_(workload) {}
  std::string address() const override { return listener_.address(); }
  void accept() override {
    while (crowd_.size() < endpoints_) crowd_.add(listener_.accept());
  }
  void serve(std::uint64_t operations) override {
    for (std::uint64_t number = 0; number < operations + meeting_rounds; ++number)
      crowd_.send(crowd_.take(number), number);
  }

 private:
  std::uint32_t endpoints_;
  Listener listener_;
  Crowd crowd_;
};

class CrowdClient final : public ClientRole {
 public:
  CrowdClient(const Workload& workload, const std::string& address) : crowd_(workload) {
    while (crowd_.size() < workload.endpoints) crowd_.add(connect_to(address));
  }
  std::string fabric() const override { return "loopback"; }
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

std::unique_ptr<ServerRole> make_crowd_server(const Workload& workload) {
  return std::make_unique<CrowdServer>(workload);
}

std::unique_ptr<ClientRole> make_crowd_client(const Workload& workload, const std::string& address) {
  return std::make_unique<CrowdClient>(workload, address);
}

}  // namespace perf::sockets
