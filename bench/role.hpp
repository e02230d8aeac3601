// The two halves of a workload. Each lives in a process of its own; what carries it (weft, bare sockets, ...)
// is hidden behind these classes, so that both contenders are driven by exactly the same code.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "workload.hpp"

namespace perf {

/// What one short slice of work gave.
struct Slice {
  std::uint64_t operations = 0;
  double seconds = 0;
  std::vector<std::uint32_t> round_trips;  ///< Nanoseconds each; only latency workloads fill it.
};

/// The passive half. Made first; `accept` returns once the client is connected.
class ServerRole {
 public:
  virtual ~ServerRole() = default;

  /// What a client needs to connect.
  [[nodiscard]] virtual std::string address() const = 0;
  virtual void accept() = 0;
  /// Does this half of `operations` operations, then returns; spins meanwhile. Throws when the peer or the
  /// data is not as expected.
  virtual void serve(std::uint64_t operations) = 0;
};

/// The active half, which holds the clock.
class ClientRole {
 public:
  virtual ~ClientRole() = default;

  /// The fabric in use, for the table: "loopback".
  [[nodiscard]] virtual std::string fabric() const = 0;
  /// Does `operations` operations, a multiple of the workload's batch. The halves first meet without the
  /// clock running, so a process still waking up is not measured.
  virtual Slice run(std::uint64_t operations) = 0;
};

/// Something that can do a workload.
struct Contender {
  std::string name;
  std::function<std::unique_ptr<ServerRole>(const Workload&)> make_server;
  std::function<std::unique_ptr<ClientRole>(const Workload&, const std::string& address)> make_client;
  bool moves_messages = false;  ///< Hands each message over whole, where a stream can be given in pieces.
};

/// Untimed round trips at the start of every slice.
inline constexpr int meeting_rounds = 16;

/// Collects the round trips of one slice; one look at the clock per round trip.
class RoundTripClock {
 public:
  using Clock = std::chrono::steady_clock;

  explicit RoundTripClock(std::uint64_t expected) { round_trips_.reserve(expected); }

  void start() { first_ = last_ = Clock::now(); }

  void lap() {
    const Clock::time_point now = Clock::now();
    round_trips_.push_back(static_cast<std::uint32_t>((now - last_).count()));
    last_ = now;
  }

  [[nodiscard]] Slice finish() {
    const std::uint64_t laps = round_trips_.size();
    return {laps, std::chrono::duration<double>(last_ - first_).count(), std::move(round_trips_)};
  }

 private:
  Clock::time_point first_;
  Clock::time_point last_;
  std::vector<std::uint32_t> round_trips_;
};

}  // namespace perf
