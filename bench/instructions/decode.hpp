// As much of the x86-64 instruction format as counting needs.
#pragma once

#include <cstdint>
#include <span>

namespace instructions {

enum class InstructionKind : std::uint8_t { plain, locked, system_call };

/// Looks at the start of one instruction. An exchange with memory locks without saying so.
[[nodiscard]] constexpr InstructionKind kind_of(std::span<const std::uint8_t> code) {
  std::size_t at = 0;
  bool lock_prefix = false;
  for (; at < code.size(); ++at) {
    const std::uint8_t byte = code[at];
    if (byte == 0xf0) lock_prefix = true;
    const bool is_prefix = byte == 0xf0 || byte == 0xf2 || byte == 0xf3 || byte == 0x66 || byte == 0x67 ||
                           byte == 0x2e || byte == 0x36 || byte == 0x3e || byte == 0x26 || byte == 0x64 ||
                           byte == 0x65;
    if (!is_prefix) break;
  }
  if (at < code.size() && (code[at] & 0xf0) == 0x40) ++at;  // REX
  if (at + 1 >= code.size()) return lock_prefix ? InstructionKind::locked : InstructionKind::plain;
  if (lock_prefix) return InstructionKind::locked;
  const bool exchange = code[at] == 0x86 || code[at] == 0x87;
  if (exchange && (code[at + 1] >> 6) != 3) return InstructionKind::locked;
  if (code[at] == 0x0f && code[at + 1] == 0x05) return InstructionKind::system_call;
  return InstructionKind::plain;
}

}  // namespace instructions
