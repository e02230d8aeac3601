// What is measured: one row of the table before it has figures.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace perf {

enum class Operation { send, write, read };

enum class Metric {
  latency,
  rate,
  bandwidth,
  /// What a call costs its caller, for each operation. Where the fabric is done within the call, that is the
  /// price of weft alone: on the verbs device made of software, in its null mode.
  call,
};

/// The point a measured operation has reached when the clock stops.
enum class Level {
  received,   ///< The peer's program has taken it: half a round trip, or all of a stream counted by the peer.
  completed,  ///< The initiator knows it is done: a full round trip.
};

/// How the bare baseline hands its messages to the fabric.
enum class NativeKind {
  same_work,             ///< As many calls as the weft side makes posts.
  pieces,                ///< In pieces of 64 KiB, whatever the size of the messages.
  coalescing,            ///< A whole batch of messages in one call.
  acknowledged,          ///< In such pieces, each message acknowledged, at most `depth` of them outstanding.
  one_call_per_message,  ///< One call for each message although weft posts batches.
};

struct Workload {
  Operation operation = Operation::send;
  Metric metric = Metric::latency;
  Level level = Level::received;
  std::size_t size = 64;    ///< Bytes per message.
  std::uint32_t depth = 1;  ///< Operations outstanding at most.
  std::uint32_t batch = 1;  ///< Operations handed over by one post call.
  NativeKind native_kind = NativeKind::same_work;
  std::uint32_t endpoints = 1;   ///< Between the two processes; each operation takes one at random.
  bool single = false;           ///< weft's thread mode is `single`, else the usual `safe`.
  bool shared_receives = false;  ///< One receive queue for all of them, as bare sockets have one buffer.

  bool operator==(const Workload&) const = default;
};

[[nodiscard]] std::string_view to_string(Operation operation);
[[nodiscard]] std::string_view to_string(Metric metric);
[[nodiscard]] std::string_view to_string(Level level);
[[nodiscard]] std::string_view to_string(NativeKind kind);

/// "send latency", "write completion", "read bandwidth": the name in the table; with '-' for the blank it is
/// the name --operations takes.
[[nodiscard]] std::string title(const Workload& workload);

/// "64 B", "64 KiB", "1 MiB".
[[nodiscard]] std::string size_text(std::size_t size);

/// Reads "64", "4k", "64KiB", "1M". Throws std::invalid_argument naming the text.
[[nodiscard]] std::size_t parse_size(std::string_view text);

/// Every name --operations takes: whole titles, and single words that pick several.
[[nodiscard]] std::vector<std::string> operation_names();

/// The rows to run. Empty `operations` means the default rows; a name picks all rows whose title it equals or
/// is a word of. Empty `sizes` means each row's own sizes; given sizes are used by every row, except that
/// rates are taken at most at rate_size_limit and bandwidths from there on. Throws std::invalid_argument for
/// an unknown name.
[[nodiscard]] std::vector<Workload> select_workloads(const std::vector<std::string>& operations,
                                                     const std::vector<std::size_t>& sizes);

/// These rows for a bare fabric that moves messages: pieces and their acknowledgements are a stream's, so
/// bandwidth is beside one call per message there, and rows that only differed in this are one.
[[nodiscard]] std::vector<Workload> without_pieces(const std::vector<Workload>& workloads);

/// Operations outstanding at most, in whole batches: the number of slots a workload walks.
[[nodiscard]] std::uint32_t window(const Workload& workload);

/// Above this size a rate says less than a bandwidth, below it the reverse.
inline constexpr std::size_t rate_size_limit = 4096;

/// What calls carry: the small ones inline and unsignalled, the large ones registered and signalled.
inline constexpr std::size_t small_call = 8;
inline constexpr std::size_t large_call = 4096;

/// Every message carries its number in its first bytes, so that neither side can win by losing or reordering
/// data.
inline constexpr std::size_t stamp_size = sizeof(std::uint64_t);

}  // namespace perf
