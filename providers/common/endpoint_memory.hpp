// Memory for endpoints and their rings, close together. With many endpoints nearly every message finds its
// endpoint cold, and on pages of 4 KiB the processor then also looks up where it is; so beyond the first few
// they lie on huge pages, where the system has them.
#pragma once

#include <cstddef>

namespace weft::engine {

class EndpointMemory {
 public:
  // Begins on a cache line. Throws std::bad_alloc.
  [[nodiscard]] static void* take(std::size_t bytes);
  // What take(bytes) returned. It is kept for the next of that size.
  static void give(void* memory, std::size_t bytes) noexcept;
};

}  // namespace weft::engine
