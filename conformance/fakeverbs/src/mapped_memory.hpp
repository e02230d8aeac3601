// What memory this process has mapped.
#pragma once

#include <cstddef>

namespace fakeverbs {

// All of it is there, readable, and writable if asked for.
[[nodiscard]] bool is_mapped(const void* address, std::size_t length, bool writable);

}  // namespace fakeverbs
