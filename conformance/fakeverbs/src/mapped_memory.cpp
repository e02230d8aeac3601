#include "mapped_memory.hpp"

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <memory>

namespace fakeverbs {

bool is_mapped(const void* address, std::size_t length, bool writable) {
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  const std::unique_ptr<std::FILE, Close> maps(std::fopen("/proc/self/maps", "re"));
  if (!maps) return true;  // out of descriptors: a device needs none for this and would not notice
  auto wanted = reinterpret_cast<std::uintptr_t>(address);
  const std::uintptr_t end = wanted + length;
  if (end < wanted) return false;
  char line[512];
  bool line_begins = true;
  while (std::fgets(line, sizeof line, maps.get()) != nullptr) {
    const bool whole = line_begins;
    // A line too long for the buffer goes on in the next piece.
    line_begins = false;
    for (const char* at = line; *at != '\0'; ++at) line_begins = *at == '\n';
    std::uintptr_t from = 0;
    std::uintptr_t to = 0;
    char rights[5] = {};
    if (!whole || std::sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &from, &to, rights) != 3) continue;
    if (to <= wanted) continue;
    if (from > wanted || rights[0] != 'r' || (writable && rights[1] != 'w')) return false;
    wanted = to;
    if (wanted >= end) return true;
  }
  return false;
}

}  // namespace fakeverbs
