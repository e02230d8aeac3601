#include "segment.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <iterator>

#include "liveness.hpp"
#include "registry.hpp"

namespace fakeverbs {
namespace {

std::byte* map(int descriptor) {
  void* address =
      ::mmap(nullptr, segment_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor, 0);
  if (address == MAP_FAILED) return nullptr;
  ::madvise(address, segment_bytes, MADV_DONTDUMP);
  return static_cast<std::byte*>(address);
}

}  // namespace

Segment::~Segment() {
  ::munmap(base_, segment_bytes);
  if (descriptor_ >= 0) ::close(descriptor_);
}

void Segment::ring() const {
  auto& head = header();
  head.doorbell.fetch_add(1);
  if (head.sleeping.load() == 0) return;
  ::syscall(SYS_futex, &head.doorbell, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

bool Segment::alive() const {
  return header().closed.load() == 0 && (is_own() || is_alive({header().pid, header().start_time}));
}

std::shared_ptr<Segment> claim_segment(const std::string& network) {
  const int descriptor = ::memfd_create("weft-fakeverbs", MFD_CLOEXEC);
  if (descriptor < 0) return nullptr;
  std::byte* base = nullptr;
  if (::ftruncate(descriptor, static_cast<off_t>(segment_bytes)) == 0) base = map(descriptor);
  if (base == nullptr) {
    ::close(descriptor);
    return nullptr;
  }
  auto segment = std::make_shared<Segment>(base, descriptor);
  const auto self = own_incarnation();
  SharedHeader& header = segment->header();
  header.version = layout_version;
  header.pid = self.pid;
  header.start_time = self.start_time;
  const auto slot = join(network, static_cast<std::uint32_t>(descriptor));
  if (!slot) return nullptr;
  header.slot = *slot;
  return segment;
}

void release_segment(const std::string& network, const Segment& segment) {
  segment.header().closed.store(1);
  leave(network, segment.slot());
}

std::shared_ptr<Segment> find_segment(const std::string& network, std::uint32_t slot) {
  const auto member = find_member(network, slot);
  if (!member) return nullptr;
  const std::string path =
      "/proc/" + std::to_string(member->process.pid) + "/fd/" + std::to_string(member->descriptor);
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return nullptr;
  struct stat status {};
  std::byte* base = nullptr;
  // A descriptor that its owner closed may be another file by now.
  if (::fstat(descriptor, &status) == 0 && status.st_size == static_cast<off_t>(segment_bytes))
    base = map(descriptor);
  ::close(descriptor);
  if (base == nullptr) return nullptr;
  auto segment = std::make_shared<Segment>(base, -1);
  const SharedHeader& header = segment->header();
  const bool right = header.version == layout_version && header.pid == member->process.pid &&
                     header.start_time == member->process.start_time;
  return right && header.closed.load() == 0 ? segment : nullptr;
}

Arena::Arena(Segment& segment) : segment_(segment) { free_[arena_offset] = arena_bytes; }

std::uint64_t Arena::allocate(std::size_t bytes) {
  bytes = (bytes + page_bytes - 1) / page_bytes * page_bytes;
  const std::lock_guard guard(mutex_);
  for (auto range = free_.begin(); range != free_.end(); ++range) {
    if (range->second < bytes) continue;
    const auto [offset, length] = *range;
    free_.erase(range);
    if (length > bytes) free_[offset + bytes] = length - bytes;
    return offset;
  }
  return 0;
}

void Arena::release(std::uint64_t offset, std::size_t bytes) {
  bytes = (bytes + page_bytes - 1) / page_bytes * page_bytes;
  // Gives the memory back, so that the next user finds zeros.
  ::madvise(&segment_.at<std::byte>(offset), bytes, MADV_REMOVE);
  const std::lock_guard guard(mutex_);
  auto after = free_.emplace(offset, bytes).first;
  if (auto next = std::next(after); next != free_.end() && after->first + after->second == next->first) {
    after->second += next->second;
    free_.erase(next);
  }
  if (after == free_.begin()) return;
  if (auto before = std::prev(after); before->first + before->second == after->first) {
    before->second += after->second;
    free_.erase(after);
  }
}

}  // namespace fakeverbs
