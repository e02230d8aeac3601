// What the engine keeps of each outstanding operation, and fixed rings of them. Completions are filled from
// here, never from what a fabric says.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "endpoint_memory.hpp"
#include "weft/work_request.hpp"

namespace weft::engine {

inline constexpr std::uint32_t max_segments = 16;
inline constexpr std::uint32_t max_inline = 256;

// A checked piece of local memory.
struct Piece {
  std::byte* address = nullptr;
  std::uint64_t length = 0;
  std::uint64_t region = 0;  // token; 0: bytes kept by the engine
};

// Room for what does not fit a record: further segments, or the bytes of an inline operation that had to
// wait.
union Spill {
  Piece pieces[max_segments];
  std::byte bytes[max_inline];
  Spill* next;  // while free
  Spill() noexcept : next(nullptr) {}
};

// Spills of one progress group. Grows while a program warms up, then allocates nothing.
class SpillPool {
 public:
  // Null only when memory is out.
  [[nodiscard]] Spill* take() noexcept;
  void give(Spill* spill) noexcept {
    spill->next = free_;
    free_ = spill;
  }

 private:
  std::vector<std::unique_ptr<Spill[]>> blocks_;
  Spill* free_ = nullptr;
};

// A view of the pieces of a record.
struct Pieces {
  const Piece* first = nullptr;
  std::uint32_t count = 0;
};

struct SendRecord {
  std::uint64_t context = 0;
  std::uint64_t length = 0;      // payload bytes
  std::uint64_t stream_end = 0;  // where its last byte lies in the outgoing stream, once framed
  std::uint64_t remote_offset = 0;
  std::uint64_t operand = 0;  // of an atomic. A message: see endpoint_strict.cpp
  std::uint64_t compare = 0;  // of an atomic. What was offered: number of the offer
  Piece piece;                // the only piece, when piece_count is 1
  Spill* spill = nullptr;
  std::uint32_t slot = 0;  // of the peer's region
  std::uint32_t immediate = 0;
  std::uint32_t number = 0;  // among one-sided operations: the acknowledgement that completes it
  Operation operation = Operation::send;
  Flags flags = Flags::none;
  std::uint8_t piece_count = 0;
  bool answered = false;  // read, atomic: the result is here
  bool offered = false;   // the peer fetches the payload

  [[nodiscard]] Pieces pieces() const noexcept {
    return piece_count > 1 ? Pieces{spill->pieces, piece_count} : Pieces{&piece, piece_count};
  }
};

// A cache line each: with many endpoints it is cold whenever a message comes.
struct alignas(64) ReceiveRecord {
  std::uint64_t context = 0;
  std::uint64_t capacity = 0;  // bytes
  Piece piece;
  Spill* spill = nullptr;
  std::uint8_t piece_count = 0;

  [[nodiscard]] Pieces pieces() const noexcept {
    return piece_count > 1 ? Pieces{spill->pieces, piece_count} : Pieces{&piece, piece_count};
  }
};

// A ring with places for `depth` records; positions only grow.
template <class Record>
class Ring {
 public:
  explicit Ring(std::uint32_t depth) : mask_(depth == 0 ? 0 : std::bit_ceil(depth) - 1), depth_(depth) {
    if (depth == 0) return;
    records_ = static_cast<Record*>(EndpointMemory::take(places() * sizeof(Record)));
    std::uninitialized_default_construct_n(records_, places());
  }
  ~Ring() {
    if (records_ != nullptr) EndpointMemory::give(records_, places() * sizeof(Record));
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  [[nodiscard]] bool full() const noexcept { return tail - head >= depth_; }
  [[nodiscard]] bool empty() const noexcept { return head == tail; }
  [[nodiscard]] std::uint64_t size() const noexcept { return tail - head; }
  [[nodiscard]] std::uint32_t depth() const noexcept { return depth_; }
  void shrink_depth(std::uint32_t depth) noexcept {
    if (depth < depth_) depth_ = depth;
  }
  [[nodiscard]] Record& operator[](std::uint64_t position) noexcept { return records_[position & mask_]; }
  [[nodiscard]] const Record& operator[](std::uint64_t position) const noexcept {
    return records_[position & mask_];
  }
  [[nodiscard]] Record& front() noexcept { return (*this)[head]; }
  [[nodiscard]] Record& back() noexcept { return (*this)[tail]; }  // the free place that ++tail takes

  std::uint64_t head = 0;
  std::uint64_t tail = 0;

 private:
  static_assert(std::is_trivially_destructible_v<Record>);
  [[nodiscard]] std::size_t places() const noexcept { return std::size_t{mask_} + 1; }

  Record* records_ = nullptr;
  std::uint64_t mask_;
  std::uint32_t depth_;
};

// Where arriving payload goes: a run of pieces and how far it is filled.
class Sink {
 public:
  Sink() = default;
  Sink(const Sink& other) noexcept { *this = other; }
  // A place of its own is one in the copy.
  Sink& operator=(const Sink& other) noexcept {
    if (this == &other) return *this;
    own_ = other.own_;
    pieces_ = other.pieces_.first == &other.own_ ? Pieces{&own_, other.pieces_.count} : other.pieces_;
    index_ = other.index_;
    offset_ = other.offset_;
    discard_ = other.discard_;
    return *this;
  }
  ~Sink() = default;

  void start(Pieces pieces) noexcept {
    pieces_ = pieces;
    index_ = 0;
    offset_ = 0;
    discard_ = false;
  }
  void start(const Piece& piece) noexcept {
    own_ = piece;
    start(Pieces{&own_, 1});
  }
  void start_discarding() noexcept { discard_ = true; }

  // Copies payload in.
  void put(const std::byte* from, std::size_t length) noexcept;
  // The place where the next bytes belong, contiguous; empty when they are discarded.
  [[nodiscard]] Piece next(std::uint64_t wanted) noexcept;
  // `length` bytes were put at next() already.
  void advance(std::uint64_t length) noexcept { offset_ += length; }
  // The pieces belong to this region.
  [[nodiscard]] bool uses(std::uint64_t region) const noexcept;

 private:
  Pieces pieces_;
  Piece own_;
  std::uint32_t index_ = 0;
  std::uint64_t offset_ = 0;
  bool discard_ = true;
};

}  // namespace weft::engine
