// Memory regions: the table of keys, and the check of every address against it.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "segment.hpp"

namespace fakeverbs {

struct RegionRequest {
  std::uint64_t address;
  std::uint64_t virtual_address;
  std::uint64_t length;
  std::uint32_t access;
  std::uint32_t domain;
  std::uint32_t device;
};

class RegionTable {
 public:
  explicit RegionTable(Segment& segment) : segment_(segment) {}
  // The key; 0 when the table is full.
  [[nodiscard]] std::uint32_t add(const RegionRequest& request);
  // No new access begins; those under way are the caller's to wait for.
  void begin_removal(std::uint32_t key);
  void finish_removal(std::uint32_t key);
  [[nodiscard]] std::uint64_t live() const {
    const std::lock_guard guard(mutex_);
    return used_ - free_.size();
  }

 private:
  Segment& segment_;
  mutable std::mutex mutex_;
  std::uint32_t used_ = 0;
  std::deque<std::uint32_t> free_;
  std::vector<std::uint16_t> generations_;
};

// Where [address, address + length) of the region with this key lies in its process; 0 when the key is
// unknown, of another domain or device, without one of the rights, or the range sticks out. Keys are compared
// whole, so that a key of a region that is gone finds nothing.
struct RegionQuestion {
  std::uint32_t key;
  std::uint64_t address;
  std::uint64_t length;
  std::uint32_t rights;
  std::uint32_t domain;
  std::uint32_t device;
};
[[nodiscard]] std::uint64_t locate(const Segment& segment, const RegionQuestion& question);

}  // namespace fakeverbs
