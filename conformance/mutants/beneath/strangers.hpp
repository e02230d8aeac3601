// Connections that were accepted and have not yet said anything.
#pragma once

#include <array>
#include <atomic>

namespace fault::strangers {

inline constexpr int most = 4096;
inline std::array<std::atomic<bool>, most> silent{};
inline std::atomic<int> number{0};

inline void accepted(int descriptor) {
  if (descriptor < most && !silent.at(static_cast<std::size_t>(descriptor)).exchange(true)) ++number;
}
inline void heard(int descriptor) {
  if (descriptor >= 0 && descriptor < most && silent.at(static_cast<std::size_t>(descriptor)).exchange(false))
    --number;
}
inline bool is_silent(int descriptor) {
  return descriptor >= 0 && descriptor < most && silent.at(static_cast<std::size_t>(descriptor));
}

}  // namespace fault::strangers
