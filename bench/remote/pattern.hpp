// Bytes that only one message of one endpoint has, for --check.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace perf::remote {

/// Whose bytes they are. Both directions of a bidirectional row have bytes of their own.
struct Author {
  bool server = false;
  std::uint32_t endpoint = 0;
};

void write_pattern(std::span<std::byte> bytes, Author author, std::uint64_t number);

/// Throws std::runtime_error naming the message, the place and both values when a byte is another one.
void check_pattern(std::span<const std::byte> bytes, Author author, std::uint64_t number);

}  // namespace perf::remote
