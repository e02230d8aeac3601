// SEC-1: bytes damaged on the way, after the handshake too.
#include <poll.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <list>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "harness/process_state.hpp"
#include "harness/raw_socket.hpp"
#include "harness/side.hpp"

namespace conformance {
namespace {

using weft::Access;
using weft::Completion;
using weft::Flags;
using weft::Operation;
using weft::Status;

// Passes every connection on to `target`, and damages one byte of what the dialing side says.
class DamagingRelay {
 public:
  DamagingRelay(std::string target, std::uint64_t damage_at, unsigned char damage)
      : target_(std::move(target)),
        listener_(RawSocket::listening()),
        damage_at_(damage_at),
        damage_(damage) {
    thread_ = std::thread([this] { run(); });
  }
  ~DamagingRelay() {
    stop_ = true;
    thread_.join();
  }
  DamagingRelay(const DamagingRelay&) = delete;
  DamagingRelay& operator=(const DamagingRelay&) = delete;

  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(listener_.port()); }
  [[nodiscard]] bool has_damaged() const { return passed_ > damage_at_; }
  [[nodiscard]] std::uint64_t passed() const { return passed_; }

 private:
  struct Link {
    RawSocket dialer;
    RawSocket target;
  };

  void run() {
    std::list<Link> links;
    while (!stop_) {
      std::vector<pollfd> ready{{listener_.descriptor(), POLLIN, 0}};
      for (const Link& link : links) {
        ready.push_back({link.dialer.descriptor(), POLLIN, 0});
        ready.push_back({link.target.descriptor(), POLLIN, 0});
      }
      if (poll(ready.data(), ready.size(), 20) <= 0) continue;
      std::size_t at = 1;
      for (auto link = links.begin(); link != links.end(); at += 2) {
        const bool open = (ready[at].revents == 0 || pass(link->dialer, link->target, true)) &&
                          (ready[at + 1].revents == 0 || pass(link->target, link->dialer, false));
        link = open ? std::next(link) : links.erase(link);
      }
      if (ready[0].revents != 0) {
        RawSocket dialer = listener_.accepted(0s);
        links.push_back({std::move(dialer), RawSocket::connected_to(target_)});
      }
    }
  }

  bool pass(const RawSocket& from, const RawSocket& to, bool damaged) {
    std::string bytes = from.receive(0s);
    if (bytes.empty()) return false;
    if (damaged) {
      const std::uint64_t before = passed_.fetch_add(bytes.size());
      if (damage_at_ >= before && damage_at_ < before + bytes.size()) {
        bytes[damage_at_ - before] =
            static_cast<char>(static_cast<unsigned char>(bytes[damage_at_ - before]) ^ damage_);
      }
    }
    return to.send(bytes);
  }

  std::string target_;
  RawSocket listener_;
  std::uint64_t damage_at_;
  unsigned char damage_;
  std::atomic<std::uint64_t> passed_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// Works on a connection whose bytes are damaged at one place; whatever comes of it, nothing outside of what
// was granted changes, both ends come to an end, and the context serves on.
void work_through(Loop& loop, const std::string& address, const GuardedBuffer& forbidden) {
  weft::EndpointOptions options;
  options.queue = loop.near.queue();
  options.timeout = 1s;
  weft::Endpoint near = loop.context.connect(address, options);
  const GuardedBuffer granted(4096);
  const GuardedBuffer target(4096);
  const GuardedBuffer source(4096);
  weft::MemoryRegion granted_region = loop.region(granted, Access::remote_write | Access::remote_read);
  weft::MemoryRegion target_region = loop.region(target);
  weft::MemoryRegion source_region = loop.region(source);
  weft::Endpoint far;
  const Deadline deadline(5s);
  bool over = false;
  options.queue = loop.far.queue();
  while (!over && !deadline.passed()) {
    if (!far) {
      if (auto request = loop.listener.next()) {
        try {
          far = request->prepare(options);
          for (int i = 0; i < 16; ++i) (void)far.receive(target_region.slice(0, 512), 1);
          request->accept();
        } catch (const weft::Error&) {
          // The arrival may already be gone.
          far = {};
        }
      }
    }
    loop.near.collect();
    loop.far.collect();
    if (near.state() == weft::EndpointState::up) break;
    over = near.state() == weft::EndpointState::ended;
    pause(1ms);
  }
  if (near.state() == weft::EndpointState::up) {
    try {
      const weft::RemoteMemory remote = near.import_memory(granted_region.key());
      for (int i = 0; i < 6; ++i) {
        (void)near.send(source_region.slice(0, 100), 1);
        (void)near.write(source_region.whole(), remote.at(0), 2);
        (void)near.write_with_immediate(source_region.slice(0, 64), remote.at(64), 9, 3);
        (void)near.read(source_region.slice(0, 1000), remote.at(3096), 4);
        (void)near.flush(5);
      }
    } catch (const weft::Error&) {
      // It ended in the meantime.
    }
    const auto end = Clock::now() + 300ms;
    while (Clock::now() < end && near.state() == weft::EndpointState::up) {
      loop.near.collect();
      loop.far.collect();
      pause(1ms);
    }
  }
  near.abort();
  CHECK(eventually(3s, [&] { return near.state() == weft::EndpointState::ended; }));
  if (far) {
    CHECK(eventually(3s, [&] { return far.state() == weft::EndpointState::ended; })) << far.describe_end();
  }
  CHECK_EQ(forbidden.touched(), "") << "memory that was not granted has changed";
  (void)loop.near.all_within(1ms);
  (void)loop.far.all_within(1ms);
  while (loop.listener.next().has_value()) {
  }
}

void damage_many(Test& test, int rounds) {
  Loop loop = make_loop(test);
  const GuardedBuffer forbidden(65536);
  forbidden.poison();
  weft::MemoryRegion forbidden_region = loop.region(forbidden, Access::local_write);
  std::mt19937_64 random(test.seed());
  // What passes this way: with a provider that moves its data elsewhere, the handshake alone.
  const DamagingRelay harmless(loop.listener.address(), ~std::uint64_t{0}, 0);
  work_through(loop, harmless.address(), forbidden);
  const std::uint64_t all = harmless.passed();
  REQUIRE_GE(all, 50U);
  int damaged = 0;
  const std::size_t before = held_bytes();
  for (int round = 0; round < rounds; ++round) {
    // Early bytes are the handshake, later ones the data.
    constexpr std::uint64_t handshake = 600;
    const std::uint64_t at = round % 3 == 0 ? random() % std::min(all, handshake) : random() % all;
    const DamagingRelay relay(loop.listener.address(), at, static_cast<unsigned char>(1 + random() % 255));
    work_through(loop, relay.address(), forbidden);
    if (relay.has_damaged()) ++damaged;
    if (round % 10 == 9) check_ping(loop);
  }
  check_ping(loop);
  CHECK_LE(held_bytes(), before + (std::size_t{64} << 20)) << "memory grew with what was damaged";
  CHECK_GE(damaged, rounds / 2) << "too few rounds came far enough to be damaged";
}

CONFORMANCE_TEST(SEC, 1, bytes_damaged_on_the_way_harm_nothing, alone.within(60s)) { damage_many(test, 25); }

CONFORMANCE_TEST(SEC, 1, many_bytes_damaged_on_the_way_harm_nothing, alone.long_run().within(600s)) {
  damage_many(test, 300);
}

}  // namespace
}  // namespace conformance
