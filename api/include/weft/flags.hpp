// Sets of flags: how a region may be accessed, how an operation is carried out.
#pragma once

#include <cstdint>

namespace weft {

// What a region grants (MEM-1). No right is implied by another at this interface.
enum class Access : std::uint32_t {
  none = 0,               // source of sends and writes only; read-only memory will do
  local_write = 1 << 0,   // receives, reads and atomic results may be placed here
  remote_read = 1 << 1,   // peers holding the key may read
  remote_write = 1 << 2,  // peers holding the key may write
  remote_atomic = 1 << 3  // peers holding the key may use atomics
};

// How one operation is carried out. The default (none) is a signalled operation.
enum class Flags : std::uint8_t {
  none = 0,
  unsignalled = 1 << 0,     // no completion when it succeeds, exactly one when it fails (CMP-1)
  inline_data = 1 << 1,     // bytes are copied at post; no region needed (OPS-6)
  fence = 1 << 2,           // takes effect after all earlier reads, writes and atomics (ORD-4)
  with_immediate = 1 << 3,  // a send carries `immediate` to the receiver's completion (OPS-4)
};

#define WEFT_FLAG_OPERATORS(Type, Base)                                      \
  [[nodiscard]] constexpr Type operator|(Type a, Type b) noexcept {          \
    return static_cast<Type>(static_cast<Base>(a) | static_cast<Base>(b));   \
  }                                                                          \
  [[nodiscard]] constexpr Type operator&(Type a, Type b) noexcept {          \
    return static_cast<Type>(static_cast<Base>(a) & static_cast<Base>(b));   \
  }                                                                          \
  constexpr Type& operator|=(Type& a, Type b) noexcept { return a = a | b; } \
  /* True when every flag of `wanted` is in `set`. */                        \
  [[nodiscard]] constexpr bool has(Type set, Type wanted) noexcept { return (set & wanted) == wanted; }

WEFT_FLAG_OPERATORS(Access, std::uint32_t)
WEFT_FLAG_OPERATORS(Flags, std::uint8_t)
#undef WEFT_FLAG_OPERATORS

}  // namespace weft
