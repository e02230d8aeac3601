#include "workload.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>

namespace perf {
namespace {

struct Row {
  Workload workload;
  std::vector<std::size_t> sizes;
  bool by_default;
};

constexpr std::size_t small = 64;
constexpr std::size_t medium = 64 * 1024;
constexpr std::size_t large = 1024 * 1024;

constexpr std::uint32_t crowd = 1001;
constexpr std::uint32_t bandwidth_depth = 16;
constexpr std::uint32_t rate_depth = 512;
constexpr std::uint32_t rate_batch = 64;

constexpr std::uint32_t calls_in_a_row = 128;
constexpr std::uint32_t call_batch = 32;
constexpr std::uint32_t polled_at_once = 16;

// The calls of one thread mode.
void add_calls(std::vector<Row>& rows, bool single) {
  using enum Operation;
  using enum Level;
  const auto add = [&](Operation operation, Level level, std::size_t size, std::uint32_t batch) {
    Workload workload{operation, Metric::call, level, size, calls_in_a_row, batch};
    workload.single = single;
    rows.push_back({workload, {size}, false});
  };
  add(send, received, small_call, 1);
  add(send, received, small_call, call_batch);
  add(write, received, small_call, 1);
  add(write, received, small_call, call_batch);
  add(write, received, large_call, 1);
  add(write, completed, large_call, 1);
  add(write, completed, large_call, polled_at_once);
}

std::vector<Row> all_rows() {
  using enum Operation;
  using enum Metric;
  using enum Level;
  using enum NativeKind;
  std::vector<Row> rows = {
      {{send, latency, received, small, 1, 1, same_work}, {small}, true},
      {{write, latency, received, small, 1, 1, same_work}, {small}, true},
      {{write, latency, completed, small, 1, 1, same_work}, {small}, false},
      {{read, latency, completed, small, 1, 1, same_work}, {small}, false},
      {{send, latency, received, small, 1, 1, same_work, crowd}, {small}, false},
      {{send, latency, received, small, 1, 1, same_work, crowd, false, true}, {small}, false},
      {{send, rate, received, small, rate_depth, 1, same_work}, {small}, true},
      {{send, rate, received, small, rate_depth, rate_batch, coalescing}, {small}, true},
      {{send, rate, received, small, rate_depth, rate_batch, one_call_per_message}, {small}, true},
      {{write, rate, completed, small, rate_depth, rate_batch, coalescing}, {small}, true},
      {{send, bandwidth, received, medium, bandwidth_depth, 1, pieces}, {medium, large}, true},
      // Some kernels move a large message fastest in one call, others in pieces: the bare side gets both
      // chances.
      {{send, bandwidth, received, large, bandwidth_depth, 1, one_call_per_message}, {large}, true},
      {{write, bandwidth, completed, medium, bandwidth_depth, 1, pieces}, {medium, large}, true},
      // The same, but knowing like weft that each write is done before more than `depth` are under way.
      {{write, bandwidth, completed, medium, bandwidth_depth, 1, acknowledged}, {medium, large}, true},
      {{read, bandwidth, completed, medium, bandwidth_depth, 1, pieces}, {medium, large}, true},
  };
  add_calls(rows, true);
  add_calls(rows, false);
  return rows;
}

std::string option_name(const Workload& workload) {
  std::string name = title(workload);
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

bool names(const std::string& name, const Workload& workload) {
  if (name == option_name(workload) || name == to_string(workload.metric)) return true;
  return workload.metric != Metric::call && name == to_string(workload.operation);
}

bool fits(const Workload& workload, std::size_t size) {
  if (size < stamp_size) return false;
  if (workload.metric == Metric::call) return size == workload.size;
  if (workload.metric == Metric::rate) return size <= rate_size_limit;
  if (workload.metric == Metric::bandwidth) return size >= rate_size_limit;
  return true;
}

}  // namespace

std::string_view to_string(Operation operation) {
  switch (operation) {
    case Operation::send:
      return "send";
    case Operation::write:
      return "write";
    case Operation::read:
      return "read";
  }
  return "?";
}

std::string_view to_string(Metric metric) {
  switch (metric) {
    case Metric::latency:
      return "latency";
    case Metric::rate:
      return "rate";
    case Metric::bandwidth:
      return "bandwidth";
    case Metric::call:
      return "call";
  }
  return "?";
}

std::string_view to_string(Level level) {
  switch (level) {
    case Level::received:
      return "received";
    case Level::completed:
      return "completed";
  }
  return "?";
}

std::string_view to_string(NativeKind kind) {
  switch (kind) {
    case NativeKind::same_work:
      return "same work";
    case NativeKind::pieces:
      return "64 KiB pieces";
    case NativeKind::acknowledged:
      return "64 KiB pieces, acknowledged";
    case NativeKind::coalescing:
      return "coalescing";
    case NativeKind::one_call_per_message:
      return "one call per message";
  }
  return "?";
}

std::string title(const Workload& workload) {
  const bool write_completion = workload.operation == Operation::write &&
                                workload.metric == Metric::latency && workload.level == Level::completed;
  if (write_completion) return "write completion";
  if (workload.metric == Metric::call) {
    const std::string call =
        workload.level == Level::completed ? "poll" : fmt::format("{} post", to_string(workload.operation));
    return workload.single ? call + " single" : call;
  }
  if (workload.endpoints > 1) return workload.shared_receives ? "shared crowd latency" : "crowd latency";
  return fmt::format("{} {}", to_string(workload.operation), to_string(workload.metric));
}

std::uint32_t window(const Workload& workload) {
  return std::max(workload.depth, workload.batch) / workload.batch * workload.batch;
}

std::string size_text(std::size_t size) {
  constexpr std::size_t kibi = 1024;
  if (size >= kibi * kibi && size % (kibi * kibi) == 0) return fmt::format("{} MiB", size / (kibi * kibi));
  if (size >= kibi && size % kibi == 0) return fmt::format("{} KiB", size / kibi);
  return fmt::format("{} B", size);
}

std::size_t parse_size(std::string_view text) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string_view unit{end, static_cast<std::size_t>(text.data() + text.size() - end)};
  std::size_t factor = 0;
  if (unit.empty() || unit == "B") factor = 1;
  if (unit == "k" || unit == "K" || unit == "KiB") factor = std::size_t{1} << 10;
  if (unit == "m" || unit == "M" || unit == "MiB") factor = std::size_t{1} << 20;
  constexpr std::size_t largest = std::size_t{1} << 30;
  if (error != std::errc{} || factor == 0 || value < stamp_size / factor || value > largest / factor ||
      value * factor < stamp_size) {
    throw std::invalid_argument(
        fmt::format("size '{}' is not a number of bytes from {} to 1024M; write for example 64, 4k or 1M",
                    text, stamp_size));
  }
  return value * factor;
}

std::vector<std::string> operation_names() {
  std::vector<std::string> result;
  for (const Row& row : all_rows()) {
    const std::string name = option_name(row.workload);
    if (std::find(result.begin(), result.end(), name) == result.end()) result.push_back(name);
  }
  for (const auto* word : {"send", "write", "read", "latency", "rate", "bandwidth", "call"})
    result.emplace_back(word);
  return result;
}

std::vector<Workload> select_workloads(const std::vector<std::string>& operations,
                                       const std::vector<std::size_t>& sizes) {
  const std::vector<Row> rows = all_rows();
  for (const std::string& name : operations) {
    const bool known =
        std::any_of(rows.begin(), rows.end(), [&](const Row& row) { return names(name, row.workload); });
    if (!known) {
      throw std::invalid_argument(fmt::format("there is no operation '{}'; the names are: {}", name,
                                              fmt::join(operation_names(), ", ")));
    }
  }
  std::vector<Workload> result;
  for (const Row& row : rows) {
    const bool wanted = operations.empty()
                            ? row.by_default
                            : std::any_of(operations.begin(), operations.end(),
                                          [&](const std::string& name) { return names(name, row.workload); });
    if (!wanted) continue;
    for (const std::size_t size : sizes.empty() ? row.sizes : sizes) {
      if (!fits(row.workload, size)) continue;
      result.push_back(row.workload);
      result.back().size = size;
    }
  }
  return result;
}

std::vector<Workload> without_pieces(const std::vector<Workload>& workloads) {
  std::vector<Workload> result;
  for (Workload workload : workloads) {
    if (workload.metric == Metric::bandwidth) workload.native_kind = NativeKind::one_call_per_message;
    if (std::find(result.begin(), result.end(), workload) == result.end()) result.push_back(workload);
  }
  return result;
}

}  // namespace perf
