// Copying between the memory of two processes.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <vector>

#include "segment.hpp"

namespace fakeverbs {

enum class Copied { all, not_all, peer_gone };

// Both lists describe equally many bytes. Where the other process is this one, plain copying does.
[[nodiscard]] Copied copy_out(const std::vector<iovec>& own, const Segment& other,
                              const std::vector<iovec>& there);
[[nodiscard]] Copied copy_in(const std::vector<iovec>& own, const Segment& other,
                             const std::vector<iovec>& there);

}  // namespace fakeverbs
