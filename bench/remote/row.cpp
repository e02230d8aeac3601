#include "row.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <stdexcept>

#include "../workload.hpp"
#include "site.hpp"

namespace perf::remote {
namespace {

constexpr std::uint64_t largest_queue = std::uint64_t{1} << 20;

template <typename Value>
Value parse(std::string_view name, const std::vector<Value>& all, std::string_view what) {
  std::vector<std::string_view> names;
  for (const Value value : all) {
    if (to_string(value) == name) return value;
    names.push_back(to_string(value));
  }
  throw std::invalid_argument(
      fmt::format("there is no {} '{}'; the names are: {}", what, name, fmt::join(names, ", ")));
}

}  // namespace

const std::vector<Kind>& all_kinds() {
  using enum Kind;
  static const std::vector<Kind> all = {send, send_with_immediate, write,        write_with_immediate,
                                        read, fetch_add,           compare_swap, flush};
  return all;
}

const std::vector<Test>& all_tests() {
  static const std::vector<Test> all = {Test::latency, Test::bandwidth, Test::rate};
  return all;
}

std::string_view to_string(Kind kind) {
  switch (kind) {
    case Kind::send:
      return "send";
    case Kind::send_with_immediate:
      return "send_with_immediate";
    case Kind::write:
      return "write";
    case Kind::write_with_immediate:
      return "write_with_immediate";
    case Kind::read:
      return "read";
    case Kind::fetch_add:
      return "fetch_add";
    case Kind::compare_swap:
      return "compare_swap";
    case Kind::flush:
      return "flush";
  }
  return "?";
}

std::string_view to_string(Test test) {
  switch (test) {
    case Test::latency:
      return "latency";
    case Test::bandwidth:
      return "bandwidth";
    case Test::rate:
      return "rate";
  }
  return "?";
}

Kind parse_kind(std::string_view name) { return parse(name, all_kinds(), "operation"); }
Test parse_test(std::string_view name) { return parse(name, all_tests(), "test"); }

std::uint32_t slots_of(const Row& row) {
  if (row.test == Test::latency) {
    // One under way at a time, but the buffer of the next must not wait for the completion of the last.
    constexpr std::uint64_t plenty = 4 * 1024 * 1024;
    return static_cast<std::uint32_t>(
        std::clamp<std::uint64_t>(plenty / std::max<std::uint64_t>(row.size, 1), 4, 64));
  }
  return std::max(row.depth, row.batch) / row.batch * row.batch;
}

std::uint32_t receives_of(const Row& row) {
  return takes_receive(row.kind) ? std::max(slots_of(row), 4U) : 0;
}

std::uint64_t memory_of(const Row& row) {
  const std::uint64_t places =
      2 * std::uint64_t{slots_of(row)} + (fills_receive(row.kind) ? receives_of(row) : 0);
  return places * std::max<std::uint64_t>(row.size, 1) * row.endpoints;
}

std::uint64_t capacity_of(const Row& row) {
  const std::uint64_t each =
      std::uint64_t{slots_of(row)} * requests_per_operation(row.kind) + receives_of(row) + flush_room;
  return each * row.endpoints + control_room;
}

void require_possible(const Row& row, std::uint64_t memory_limit) {
  const auto require = [](bool good, const std::string& what) {
    if (!good) throw std::invalid_argument(what);
  };
  require(row.size <= largest_size, fmt::format("size {} is beyond {}", row.size, size_text(largest_size)));
  require(row.depth >= 1 && row.depth <= largest_depth,
          fmt::format("depth {} is not from 1 to {}", row.depth, largest_depth));
  require(row.batch >= 1 && row.batch <= largest_depth,
          fmt::format("batch {} is not from 1 to {}", row.batch, largest_depth));
  require(row.endpoints >= 1 && row.endpoints <= most_endpoints,
          fmt::format("{} endpoints are not from 1 to {}", row.endpoints, most_endpoints));
  require(!is_atomic(row.kind) || row.size == 8, "atomics are always of 8 bytes");
  require(!row.bidirectional || row.test != Test::latency,
          "a latency cannot be bidirectional: it is one at a time");
  require(
      capacity_of(row) <= largest_queue,
      fmt::format("{} endpoints of depth {} need a completion queue of {}; at most {} can be had: take fewer "
                  "endpoints or a smaller depth",
                  row.endpoints, row.depth, capacity_of(row), largest_queue));
  require(
      memory_of(row) <= memory_limit,
      fmt::format("{} endpoints of depth {} with {} each need {} MiB of memory, allowed are {} MiB: take "
                  "fewer endpoints, a smaller depth or size, or --memory on both sides",
                  row.endpoints, row.depth, size_text(row.size), memory_of(row) >> 20, memory_limit >> 20));
}

}  // namespace perf::remote
