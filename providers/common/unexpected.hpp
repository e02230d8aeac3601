// Messages that came before their receive: a ring of bytes of a fixed size, the window a peer may fill
// (OPS-3).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "records.hpp"

namespace weft::engine {

class Unexpected {
 public:
  static constexpr std::uint64_t unit = 64;

  // What a message of this length takes of the window. Both ends reckon by it.
  [[nodiscard]] static constexpr std::uint64_t charge(std::uint64_t length) noexcept {
    return unit + (length + unit - 1) / unit * unit;
  }

  struct Message {
    std::uint64_t length;  // of the message; of the write, for a notification
    std::uint64_t stored;  // payload bytes kept here
    std::uint32_t immediate;
    bool has_immediate;
    bool complete;
  };
  static_assert(sizeof(Message) <= unit);

  explicit Unexpected(std::uint64_t window)
      : bytes_(std::make_unique_for_overwrite<std::byte[]>(window)), window_(window) {}

  [[nodiscard]] bool empty() const noexcept { return head_ == tail_; }
  [[nodiscard]] bool fits(std::uint64_t stored) const noexcept {
    return charge(stored) <= window_ - (tail_ - head_);
  }

  // Adds a message that fits; its payload is to be put where `pieces` says.
  Message& add(std::uint64_t stored) noexcept {
    last_ = tail_;
    tail_ += charge(stored);
    Message& message = at(last_);
    message = {.length = stored, .stored = stored, .immediate = 0, .has_immediate = false, .complete = false};
    return message;
  }
  [[nodiscard]] Message& last() noexcept { return at(last_); }
  [[nodiscard]] Pieces last_pieces() noexcept { return pieces_of(last_, last_pieces_); }

  [[nodiscard]] Message& front() noexcept { return at(head_); }
  [[nodiscard]] Pieces front_pieces() noexcept { return pieces_of(head_, front_pieces_); }
  // Returns what the window gets back.
  std::uint64_t pop() noexcept {
    const std::uint64_t given_back = charge(front().stored);
    head_ += given_back;
    return given_back;
  }

 private:
  [[nodiscard]] Message& at(std::uint64_t position) noexcept {
    return *reinterpret_cast<Message*>(bytes_.get() + position % window_);
  }
  // The payload may run over the end of the ring.
  static constexpr std::size_t most = 2;
  using Run = std::array<Piece, most>;
  [[nodiscard]] Pieces pieces_of(std::uint64_t position, Run& run) noexcept {
    const std::uint64_t stored = at(position).stored;
    const std::uint64_t start = (position + unit) % window_;
    const std::uint64_t first = stored < window_ - start ? stored : window_ - start;
    run[0] = {bytes_.get() + start, first, 0};
    run[1] = {bytes_.get(), stored - first, 0};
    return {run.data(), stored > first ? 2U : 1U};
  }

  std::unique_ptr<std::byte[]> bytes_;
  std::uint64_t window_;
  std::uint64_t head_ = 0;
  std::uint64_t tail_ = 0;
  std::uint64_t last_ = 0;
  Run front_pieces_{};
  Run last_pieces_{};
};

}  // namespace weft::engine
