#pragma once

#include <unistd.h>

#include <fstream>
#include <stdexcept>

namespace perf {

/// Resident memory of this process.
[[nodiscard]] inline double resident_kib() {
  std::ifstream file("/proc/self/statm");
  long size = 0;
  long resident = 0;
  if (!(file >> size >> resident)) throw std::runtime_error("/proc/self/statm cannot be read");
  return static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 1024;
}

}  // namespace perf
