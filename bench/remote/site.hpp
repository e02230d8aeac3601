// One side of a row: its completion queue, its memory, the endpoints that carry the work ("lanes"), and one
// more endpoint on which the two sides agree. Everything that completes passes through take().
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>
#include <weft/weft.hpp>

#include "../buffers.hpp"
#include "row.hpp"
#include "wire.hpp"

namespace perf::remote {

/// Room in the queue for what the two sides tell each other, and for the flush of a lane at the end.
inline constexpr std::uint32_t control_room = 64;
inline constexpr std::uint32_t flush_room = 1;

/// The other side is gone, or said why it cannot go on.
class PeerProblem : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// One endpoint that carries the work. Messages are numbered from 0 over the whole row.
struct Lane {
  weft::Endpoint endpoint;
  weft::RemoteMemory remote;
  std::uint64_t posted = 0;
  std::uint64_t completed = 0;  ///< The first so many are complete (CMP-4).
  std::uint64_t looked_at = 0;  ///< The first so many that brought something back were checked.
  std::uint64_t arrived = 0;
  std::uint64_t reposted = 0;  ///< Receives posted again.
};

class Site {
 public:
  Site(weft::Context& context, const Row& row, bool server);
  Site(const Site&) = delete;
  Site& operator=(const Site&) = delete;
  ~Site();

  // ---- connecting
  [[nodiscard]] weft::EndpointOptions control_options(std::span<const std::byte> private_data) const;
  [[nodiscard]] weft::EndpointOptions lane_options(std::uint32_t lane,
                                                   std::span<const std::byte> private_data) const;
  /// Takes over endpoints that are being made, and posts their receives.
  void set_control(weft::Endpoint endpoint);
  void set_lane(std::uint32_t lane, weft::Endpoint endpoint);
  /// Waits until all lanes are up and have the peer's memory. Throws weft::Error.
  void complete_lanes(std::span<const std::byte> peer_key);
  [[nodiscard]] std::span<const std::byte> key() const { return target_region_.key(); }

  // ---- what the two sides tell each other
  void tell(const Json& message);
  [[nodiscard]] bool has_heard() const { return !heard_.empty(); }
  /// The oldest message not yet taken. Throws PeerProblem for the peer's own account of a problem.
  [[nodiscard]] std::optional<Json> hear();
  /// Sleeps until there is one. Throws PeerProblem when the peer is silent for that long.
  [[nodiscard]] Json await(std::chrono::seconds limit);
  /// Tells why this side cannot go on, and gives the word time to arrive; never throws.
  void tell_problem(const std::string& text) noexcept;
  /// Tells that the row is over and lets the peer end the endpoints.
  void say_goodbye();

  // ---- the data path
  /// Takes what completed; with `sleepy`, and when the row wants events, sleeps until something does.
  void take(bool sleepy);
  /// From now on take() throws PeerProblem once this time is over: a peer that lives but falls silent.
  void limit(std::chrono::seconds time);
  /// Posts all requests with one call; only what was not taken is tried again.
  void post(Lane& lane, std::span<const weft::WorkRequest> requests);
  /// Posts the receive of the oldest messages again, in batches.
  void recycle(Lane& lane, bool all);

  [[nodiscard]] const Row& row() const { return row_; }
  [[nodiscard]] bool is_server() const { return server_; }
  [[nodiscard]] std::vector<Lane>& lanes() { return lanes_; }
  [[nodiscard]] std::uint64_t arrived() const { return arrived_; }
  [[nodiscard]] SlotBuffer& sources() { return sources_; }
  [[nodiscard]] SlotBuffer& target() { return target_; }
  [[nodiscard]] weft::Segment source_segment(std::uint64_t place, std::uint64_t length) const {
    return source_region_.slice(sources_.offset(place), length);
  }
  [[nodiscard]] std::uint64_t target_offset(std::uint64_t place) const { return target_.offset(place); }
  /// Where message `number` of a lane has its place in sources and target.
  [[nodiscard]] std::uint64_t place_of(std::uint32_t lane, std::uint64_t number) const {
    return std::uint64_t{lane} * slots_ + number % slots_;
  }
  [[nodiscard]] std::uint32_t slots() const { return slots_; }
  [[nodiscard]] std::uint32_t max_inline() const { return max_inline_; }

 private:
  void handle(const weft::Completion& completion);
  void handle_control(const weft::Completion& completion);
  void handle_arrival(Lane& lane, std::uint32_t index, const weft::Completion& completion);
  void post_receives(Lane& lane, std::uint32_t index, std::uint64_t from, std::uint64_t count);
  void post_control_receive(std::uint64_t place);
  [[noreturn]] void fail(const weft::Completion& completion);

  Row row_;
  std::chrono::seconds limit_{0};
  std::chrono::steady_clock::time_point limit_ends_ = std::chrono::steady_clock::time_point::max();
  std::uint64_t takes_ = 0;
  bool server_;
  std::uint32_t slots_;
  std::uint32_t receives_;
  std::uint32_t recycle_batch_;
  SlotBuffer sources_;
  SlotBuffer target_;
  SlotBuffer received_;
  SlotBuffer control_memory_;
  weft::CompletionQueue queue_;
  weft::MemoryRegion source_region_;
  weft::MemoryRegion target_region_;
  weft::MemoryRegion received_region_;
  weft::MemoryRegion control_region_;
  weft::Endpoint control_;
  std::vector<Lane> lanes_;
  std::deque<std::string> heard_;
  std::vector<weft::Segment> receive_segments_;
  std::vector<weft::ReceiveRequest> receive_requests_;
  std::array<weft::Completion, 64> entries_{};
  std::uint64_t control_posted_ = 0;
  std::uint64_t control_completed_ = 0;
  std::uint64_t arrived_ = 0;
  std::uint32_t max_inline_ = 0;
};

}  // namespace perf::remote
