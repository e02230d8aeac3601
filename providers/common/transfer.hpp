// What is under way between two endpoints besides the records of this side's own operations.
#pragma once

#include <cstdint>

#include "records.hpp"
#include "weft/flags.hpp"

namespace weft::engine {

// One operation or answer whose payload is arriving.
struct Transfer {
  enum class Kind : std::uint8_t { none, message, stored_message, write, notified_write, answer };
  Sink sink;
  std::uint64_t left = 0;  // payload bytes of the whole operation still to come
  std::uint64_t total = 0;
  std::uint32_t immediate = 0;
  bool has_immediate = false;
  bool charged = false;
  bool acknowledge = false;
};

// An answer this side owes: bytes of a region, or a value.
struct Answer {
  Piece piece;
  std::uint64_t value = 0;
  bool atomic = false;
  bool in_stream = false;  // and not offered
};

struct Import {
  std::uint64_t token = 0;
  std::uint64_t length = 0;
  Access access = Access::none;
  std::uint32_t misalignment = 0;
  bool released = false;
};

}  // namespace weft::engine
