// This process's segment, and those of the processes it talks to.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "shared.hpp"

namespace fakeverbs {

// A mapping of one process's segment.
class Segment {
 public:
  // With a descriptor it is this process's own.
  Segment(std::byte* base, int descriptor) : base_(base), descriptor_(descriptor) {}
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;
  ~Segment();

  [[nodiscard]] SharedHeader& header() const { return shared().header; }
  [[nodiscard]] std::uint32_t slot() const { return header().slot; }
  [[nodiscard]] int pid() const { return static_cast<int>(header().pid); }
  [[nodiscard]] bool is_own() const { return descriptor_ >= 0; }
  [[nodiscard]] SharedQueuePair& queue_pair(std::uint32_t index) const { return shared().queue_pairs[index]; }
  [[nodiscard]] SharedRegion& region(std::uint32_t index) const { return shared().regions[index]; }
  template <class T>
  [[nodiscard]] T& at(std::uint64_t offset) const {
    return *reinterpret_cast<T*>(base_ + offset);
  }
  // Wakes the process's device thread.
  void ring() const;
  [[nodiscard]] bool alive() const;

 private:
  [[nodiscard]] SharedSegment& shared() const { return *reinterpret_cast<SharedSegment*>(base_); }
  std::byte* base_;
  int descriptor_;
};

// Memory in the own segment, given out in whole pages.
class Arena {
 public:
  explicit Arena(Segment& segment);
  [[nodiscard]] std::uint64_t allocate(std::size_t bytes);  // the offset; 0 when there is no room. Zeroed.
  void release(std::uint64_t offset, std::size_t bytes);

 private:
  Segment& segment_;
  std::mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> free_;  // offset to length
};

// A segment for this process, known to others on the network; null and errno when that is not possible.
[[nodiscard]] std::shared_ptr<Segment> claim_segment(const std::string& network);
void release_segment(const std::string& network, const Segment& segment);
// The segment of the process in that slot, if one lives there.
[[nodiscard]] std::shared_ptr<Segment> find_segment(const std::string& network, std::uint32_t slot);

}  // namespace fakeverbs
