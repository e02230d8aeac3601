// Fills memory that the library is about to write with a pattern, so that a program that reads it too early
// sees nonsense and not what was there before.
#pragma once

#include <cstddef>
#include <cstring>
#include <vector>

#include "ledger.hpp"

namespace weft::check {

inline constexpr unsigned char poison_byte = 0xCB;

class Poison {
 public:
  // Fills the pieces of an operation that writes.
  void fill(const Open& open) {
    if (!open.written) return;
    for (const Piece& piece : open.pieces) {
      auto* const address = const_cast<std::byte*>(piece.address);  // it is the program's own writable memory
      before_.push_back({address, {address, address + piece.length}});
      std::memset(address, poison_byte, piece.length);
    }
  }
  // The operation was not taken: the memory is as it was.
  void undo() noexcept {
    for (const Saved& saved : before_) {
      if (!saved.bytes.empty()) std::memcpy(saved.address, saved.bytes.data(), saved.bytes.size());
    }
  }

 private:
  struct Saved {
    std::byte* address;
    std::vector<std::byte> bytes;
  };
  std::vector<Saved> before_;
};

}  // namespace weft::check
