// What the two halves of every workload have in common: they find each other, meet, and tell each other
// things.
#pragma once

#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "../../buffers.hpp"
#include "../../role.hpp"
#include "link.hpp"

namespace perf::ofi {

/// A link with a small buffer for what the halves tell each other beside the workload.
class Half : public Link {
 public:
  explicit Half(const Fabric& fabric)
      : Link(fabric), notes_(note_size, 2), notes_memory_(*this, notes_.bytes()) {}

  void tell(std::span<const std::byte> bytes) {
    std::memcpy(notes_.slot(0), bytes.data(), bytes.size());
    send(notes_.slot(0), bytes.size(), notes_memory_);
    wait_for_all();
  }
  /// Only while no other receives are posted.
  std::vector<std::byte> hear() {
    heard_ = 0;
    receive(notes_.slot(1), note_size, notes_memory_, note_number);
    while (heard_ == 0) progress();
    return {notes_.slot(1), notes_.slot(1) + heard_};
  }

 protected:
  void on_received(std::uint64_t number, std::size_t length) override {
    if (number == note_number) heard_ = length;
  }

 private:
  static constexpr std::size_t note_size = 512;
  static constexpr std::uint64_t note_number = ~std::uint64_t{0};
  SlotBuffer notes_;
  Memory notes_memory_;
  std::size_t heard_ = 0;
};

[[nodiscard]] inline std::string to_text(std::span<const std::byte> bytes) {
  constexpr auto digits = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    text += digits[std::to_integer<unsigned>(byte) >> 4];
    text += digits[std::to_integer<unsigned>(byte) & 15];
  }
  return text;
}
[[nodiscard]] inline std::vector<std::byte> from_text(const std::string& text) {
  std::vector<std::byte> bytes;
  for (std::size_t at = 0; at + 1 < text.size(); at += 2)
    bytes.push_back(static_cast<std::byte>(std::stoul(text.substr(at, 2), nullptr, 16)));
  return bytes;
}

/// The server tells its address as text; the client's comes as its first message.
inline void accept_peer(Half& half) {
  half.connect(half.hear());
  const std::byte welcome{};
  half.tell({&welcome, 1});
}
inline void reach_peer(Half& half, const std::string& address) {
  half.connect(from_text(address));
  half.tell(half.address());
  static_cast<void>(half.hear());
}

/// Untimed round trips; each side has told and heard as many.
inline void meet(Half& half, bool first) {
  const std::byte token{};
  for (int round = 0; round < meeting_rounds; ++round) {
    if (!first) static_cast<void>(half.hear());
    half.tell({&token, 1});
    if (first) static_cast<void>(half.hear());
  }
}

}  // namespace perf::ofi
