#include "regions.hpp"

namespace fakeverbs {
namespace {

// A key is its place in the table and, below it, how often the place was used: a key comes back after 65,535
// uses.
constexpr std::uint32_t index_of(std::uint32_t key) { return key >> 16; }

}  // namespace

std::uint32_t RegionTable::add(const RegionRequest& request) {
  const std::lock_guard guard(mutex_);
  std::uint32_t index = 0;
  if (!free_.empty()) {
    index = free_.front();
    free_.pop_front();
  } else if (used_ + 1 < max_regions) {
    index = ++used_;
    generations_.resize(used_ + 1);
  } else {
    return 0;
  }
  if (++generations_[index] == 0) generations_[index] = 1;
  const std::uint32_t key = index << 16 | generations_[index];
  SharedRegion& region = segment_.region(index);
  region.address = request.address;
  region.virtual_address = request.virtual_address;
  region.length = request.length;
  region.access = request.access;
  region.domain = request.domain;
  region.device = request.device;
  region.key.store(key);
  region.state.store(static_cast<std::uint32_t>(RegionState::live));
  return key;
}

void RegionTable::begin_removal(std::uint32_t key) {
  segment_.region(index_of(key)).state.store(static_cast<std::uint32_t>(RegionState::dying));
}

void RegionTable::finish_removal(std::uint32_t key) {
  const std::lock_guard guard(mutex_);
  SharedRegion& region = segment_.region(index_of(key));
  region.key.store(0);
  region.state.store(static_cast<std::uint32_t>(RegionState::free));
  free_.push_back(index_of(key));
}

std::uint64_t locate(const Segment& segment, const RegionQuestion& question) {
  const SharedRegion& region = segment.region(index_of(question.key));
  if (question.key == 0 || region.state.load() != static_cast<std::uint32_t>(RegionState::live) ||
      region.key.load() != question.key) {
    return 0;
  }
  if (region.domain != question.domain || region.device != question.device ||
      (region.access & question.rights) != question.rights) {
    return 0;
  }
  if (question.address < region.virtual_address || question.length > region.length) return 0;
  const std::uint64_t offset = question.address - region.virtual_address;
  if (offset > region.length - question.length) return 0;
  return region.address + offset;
}

}  // namespace fakeverbs
