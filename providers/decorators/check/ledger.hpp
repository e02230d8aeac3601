// Which memory belongs to the library at the moment, and for which operation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <vector>

#include "weft/work_request.hpp"

namespace weft::check {

struct Piece {
  const std::byte* address = nullptr;
  std::uint64_t length = 0;
  std::uint64_t region = 0;
};

// An accepted operation whose completion the program has not taken.
struct Open {
  Operation operation = Operation::send;
  std::uint64_t context = 0;
  bool signalled = true;
  bool written = false;        // the library writes the pieces; else it reads them
  std::vector<Piece> pieces;   // none for inline data
  std::uint64_t checksum = 0;  // of what the library reads
  std::string owner;           // "endpoint 3"

  [[nodiscard]] std::string text() const;  // "receive context=0x7 of endpoint 3"
};

[[nodiscard]] std::uint64_t checksum_of(const std::vector<Piece>& pieces) noexcept;

class Ledger {
 public:
  // The first open operation that the new one must not meet, or null.
  [[nodiscard]] const Open* conflict(const Open& candidate) const;
  void add(const Open& open);
  void remove(const Open& open);

 private:
  struct Span {
    std::uint64_t length;
    const Open* open;
  };
  std::multimap<std::uintptr_t, Span> spans_;  // by their first byte
  std::uint64_t longest_ = 0;
};

}  // namespace weft::check
