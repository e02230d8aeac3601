#include "sender.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "pattern.hpp"

namespace perf::remote {
namespace {

// A completion is asked for a few times per round of places: often enough that places come back in time,
// seldom enough that it costs little.
constexpr std::uint32_t signals_per_round = 16;

weft::Operation operation_of(Kind kind) {
  switch (kind) {
    case Kind::send:
    case Kind::send_with_immediate:
      return weft::Operation::send;
    case Kind::write:
    case Kind::flush:
      return weft::Operation::write;
    case Kind::write_with_immediate:
      return weft::Operation::write_with_immediate;
    case Kind::read:
      return weft::Operation::read;
    case Kind::fetch_add:
      return weft::Operation::fetch_add;
    case Kind::compare_swap:
      return weft::Operation::compare_swap;
  }
  return weft::Operation::send;
}

std::uint64_t word_at(std::byte* place) {
  std::uint64_t word = 0;
  std::memcpy(&word, place, sizeof word);
  return word;
}

[[noreturn]] void wrong_count(const char* where, std::uint32_t lane, std::uint64_t number,
                              std::uint64_t found, std::uint64_t expected) {
  throw std::runtime_error(fmt::format("wrong data: {} of atomic {} of endpoint {} is {} instead of {}",
                                       where, number, lane, found, expected));
}

}  // namespace

Sender::Sender(Site& site)
    : site_(site),
      row_(site.row()),
      batch_(row_.test == Test::latency ? 1 : row_.batch),
      per_operation_(requests_per_operation(row_.kind)),
      signal_every_(row_.test != Test::latency ? std::max(batch_, site.slots() / signals_per_round)
                    : is_ping_pong(row_)       ? std::max(site.slots() / 4, 1U)
                                               : 1),
      unsignalled_(row_.endpoints, 0),
      requests_(std::size_t{batch_} * per_operation_),
      segments_(batch_) {}

void Sender::post_batch(bool signalled) {
  Lane& lane = site_.lanes()[turn_];
  for (std::uint32_t i = 0; i < batch_; ++i) {
    const std::uint64_t number = lane.posted + i;
    if (row_.check) prepare_bytes(turn_, number);
    fill(&requests_[std::size_t{i} * per_operation_], turn_, lane, number, &segments_[i]);
  }
  unsignalled_[turn_] += batch_;
  if (signalled || unsignalled_[turn_] >= signal_every_) {
    weft::Flags& flags = requests_.back().flags;
    flags = has(flags, weft::Flags::inline_data)
                ? weft::Flags::inline_data | (flags & weft::Flags::with_immediate)
                : flags & weft::Flags::with_immediate;
    unsignalled_[turn_] = 0;
  }
  lane.posted += batch_;
  ++batches_;
  turn_ = turn_ + 1 == row_.endpoints ? 0 : turn_ + 1;
  site_.post(lane, requests_);
}

void Sender::fill(weft::WorkRequest* request, std::uint32_t lane_index, const Lane& lane,
                  std::uint64_t number, weft::Segment* segment) {
  const std::uint64_t place = site_.place_of(lane_index, number);
  request->operation = operation_of(row_.kind);
  request->flags = weft::Flags::unsignalled;
  request->context = number + 1;
  request->segments = {segment, row_.size > 0 ? 1U : 0U};
  *segment = site_.source_segment(place, row_.size);
  if (!fetches(row_.kind) && row_.size > 0 && row_.size <= site_.max_inline()) {
    request->flags |= weft::Flags::inline_data;
    *segment = weft::Segment::inline_bytes(site_.sources().slot(place), row_.size);
  }
  if (!fills_receive(row_.kind)) request->remote = lane.remote.at(site_.target_offset(place));
  if (row_.kind == Kind::send_with_immediate) request->flags |= weft::Flags::with_immediate;
  request->immediate = static_cast<std::uint32_t>(number);
  // Each place counts for itself how often it was used, so that every result is known beforehand.
  request->compare = number / site_.slots();
  request->operand = row_.kind == Kind::compare_swap ? request->compare + 1 : 1;
  if (row_.kind == Kind::flush) {
    request[1].operation = weft::Operation::flush;
    request[1].flags = weft::Flags::unsignalled;
    request[1].context = number + 1;
  }
}

void Sender::prepare_bytes(std::uint32_t lane_index, std::uint64_t number) {
  const std::span<std::byte> bytes{site_.sources().slot(site_.place_of(lane_index, number)), row_.size};
  if (fetches(row_.kind)) {
    std::ranges::fill(bytes, std::byte{0xee});  // what an earlier one brought must not pass for this one
  } else {
    write_pattern(bytes, {site_.is_server(), lane_index}, number);
  }
}

void Sender::look_at_results() {
  if (!row_.check || !fetches(row_.kind)) return;
  for (std::uint32_t index = 0; index < row_.endpoints; ++index) {
    Lane& lane = site_.lanes()[index];
    for (; lane.looked_at < lane.completed; ++lane.looked_at) look_at(index, lane.looked_at);
  }
}

void Sender::look_at(std::uint32_t lane_index, std::uint64_t number) {
  std::byte* const bytes = site_.sources().slot(site_.place_of(lane_index, number));
  if (row_.kind == Kind::read) {
    check_pattern({bytes, row_.size}, {!site_.is_server(), lane_index}, number % site_.slots());
  } else if (word_at(bytes) != number / site_.slots()) {
    wrong_count("the result", lane_index, number, word_at(bytes), number / site_.slots());
  }
}

bool Sender::is_idle() const {
  return std::ranges::all_of(site_.lanes(), [](const Lane& lane) { return lane.completed == lane.posted; });
}

void Sender::flush() {
  for (Lane& lane : site_.lanes()) {
    weft::WorkRequest request;
    request.operation = weft::Operation::flush;
    request.context =
        lane.posted + 1;  // one beyond, so that its completion is told from the last operation's
    site_.post(lane, {&request, 1});
    while (lane.completed <= lane.posted) site_.take(true);
    lane.completed = lane.posted;
  }
}

std::uint64_t messages_of_lane(const Row& row, std::uint64_t batches, std::uint32_t lane) {
  const std::uint64_t mine = batches / row.endpoints + (lane < batches % row.endpoints ? 1 : 0);
  return mine * (row.test == Test::latency ? 1 : row.batch);
}

void check_left_bytes(Site& site, std::uint64_t peer_batches) {
  const Row& row = site.row();
  for (std::uint32_t lane = 0; lane < row.endpoints; ++lane) {
    const std::uint64_t messages = messages_of_lane(row, peer_batches, lane);
    const std::uint64_t slots = site.slots();
    for (std::uint64_t number = messages - std::min(messages, slots); number < messages; ++number) {
      std::byte* const place = site.target().slot(site.place_of(lane, number));
      if (leaves_bytes(row.kind)) check_pattern({place, row.size}, {!site.is_server(), lane}, number);
      const std::uint64_t times = number / slots + 1;
      if (is_atomic(row.kind) && word_at(place) != times)
        wrong_count("the value after", lane, number, word_at(place), times);
    }
  }
}

}  // namespace perf::remote
