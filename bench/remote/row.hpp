// What `weft-perf client` asks for: one row of its table before it has figures.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>
#include <weft/weft.hpp>

namespace perf::remote {

/// Every operation of the contract; a flush is measured behind a write, because alone it has nothing to do.
enum class Kind {
  send,
  send_with_immediate,
  write,
  write_with_immediate,
  read,
  fetch_add,
  compare_swap,
  flush
};

enum class Test {
  latency,    ///< One at a time: there and back, or until it is complete.
  bandwidth,  ///< Many under way, judged by their bytes.
  rate,       ///< Many under way, handed over in batches, judged by their number.
};

struct Row {
  Kind kind = Kind::send;
  Test test = Test::latency;
  std::uint64_t size = 64;      ///< Bytes of each operation; 8 for atomics.
  std::uint32_t depth = 1;      ///< Operations outstanding on an endpoint at most.
  std::uint32_t batch = 1;      ///< Operations handed over by one post call.
  std::uint32_t endpoints = 1;  ///< They take turns.
  bool bidirectional = false;   ///< The server does the same at the same time.
  bool events = false;          ///< Both sides sleep while nothing happens, instead of polling.
  bool check = false;           ///< Every byte is made, and looked at.
};

inline constexpr std::uint64_t largest_size = std::uint64_t{1} << 30;
inline constexpr std::uint32_t largest_depth = 16'384;
inline constexpr std::uint32_t most_endpoints = 10'000;

[[nodiscard]] const std::vector<Kind>& all_kinds();
[[nodiscard]] const std::vector<Test>& all_tests();
[[nodiscard]] std::string_view to_string(Kind kind);
[[nodiscard]] std::string_view to_string(Test test);
/// Throw std::invalid_argument with the names there are.
[[nodiscard]] Kind parse_kind(std::string_view name);
[[nodiscard]] Test parse_test(std::string_view name);

/// Whether each operation takes a receive of the peer.
[[nodiscard]] constexpr bool takes_receive(Kind kind) {
  return kind == Kind::send || kind == Kind::send_with_immediate || kind == Kind::write_with_immediate;
}
[[nodiscard]] constexpr bool has_immediate(Kind kind) {
  return kind == Kind::send_with_immediate || kind == Kind::write_with_immediate;
}
[[nodiscard]] constexpr bool is_atomic(Kind kind) {
  return kind == Kind::fetch_add || kind == Kind::compare_swap;
}
/// Whether its bytes go into the receive's memory.
[[nodiscard]] constexpr bool fills_receive(Kind kind) {
  return kind == Kind::send || kind == Kind::send_with_immediate;
}
/// Whether it brings something back into local memory.
[[nodiscard]] constexpr bool fetches(Kind kind) { return kind == Kind::read || is_atomic(kind); }
/// Whether it leaves bytes in the peer's registered memory.
[[nodiscard]] constexpr bool leaves_bytes(Kind kind) {
  return kind == Kind::write || kind == Kind::write_with_immediate || kind == Kind::flush;
}
/// There and back, instead of until complete.
[[nodiscard]] constexpr bool is_ping_pong(const Row& row) {
  return row.test == Test::latency && takes_receive(row.kind);
}
/// Work requests that one operation consists of: a flush comes with a write to flush.
[[nodiscard]] constexpr std::uint32_t requests_per_operation(Kind kind) {
  return kind == Kind::flush ? 2 : 1;
}

/// Places that the operations of one endpoint go round, on the side that starts them: whole batches.
[[nodiscard]] std::uint32_t slots_of(const Row& row);
/// Receives posted on each endpoint; 0 when none is needed.
[[nodiscard]] std::uint32_t receives_of(const Row& row);
/// Bytes of memory that one side takes for the row, at most.
[[nodiscard]] std::uint64_t memory_of(const Row& row);
/// Room in the completion queue.
[[nodiscard]] std::uint64_t capacity_of(const Row& row);

/// Throws std::invalid_argument with what is wrong and what is allowed; a row from the network is checked by
/// this too.
void require_possible(const Row& row, std::uint64_t memory_limit);

}  // namespace perf::remote
