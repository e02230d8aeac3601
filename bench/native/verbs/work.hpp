// What is measured: one operation, one kind of measurement, one size, depth and batch.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft::native {

enum class Operation { send, write, read, write_with_immediate, fetch_add };
enum class Kind { latency, rate, bandwidth };

Operation parse_operation(std::string_view name);
Kind parse_kind(std::string_view name);
std::string_view name_of(Operation operation);

// True when the target takes part with a posted receive.
constexpr bool consumes_receive(Operation operation) {
  return operation == Operation::send || operation == Operation::write_with_immediate;
}

// True when only the initiator's processor works, so that one operation's time is a whole round trip.
constexpr bool answers_itself(Operation operation) {
  return operation == Operation::read || operation == Operation::fetch_add;
}

struct Work {
  Operation operation;
  Kind kind;
  std::uint64_t size;        // bytes per operation
  std::uint32_t depth;       // operations outstanding at most
  std::uint32_t batch;       // work requests per post call
  std::uint64_t operations;  // per run; 0: still to be found

  // Size of the send queue. A ping-pong has one operation outstanding but room for completions to come late.
  [[nodiscard]] std::uint32_t queue_depth() const;
  // Completions are asked for every this many requests: rare enough to cost little, often enough that the
  // ring never runs dry while one is awaited.
  [[nodiscard]] std::uint32_t signal_interval() const;
};

struct Counts {
  std::uint64_t doorbells = 0;
  std::uint64_t signals = 0;
};

// What one run gave. Times in microseconds; rate in millions per second; bandwidth in 10^6 bytes per second.
struct Measured {
  std::vector<double> latencies_us;  // latency only, one per operation
  double seconds = 0;                // rate and bandwidth only
  std::uint64_t doorbells = 0;       // calls of ibv_post_send at the initiator
  std::uint64_t signals = 0;         // requests that asked for a completion
};

}  // namespace weft::native
