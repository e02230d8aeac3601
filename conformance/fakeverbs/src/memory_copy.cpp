#include "memory_copy.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace fakeverbs {
namespace {

// The thread sanitizer must not judge these accesses: an adapter's accesses to memory are ordered by
// completions, which it cannot see, and by nothing at all where the program meant them to race.
void copy_bytes(void* to, const void* from, std::size_t bytes) {
#if defined(__SANITIZE_THREAD__) && defined(__x86_64__)
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
#else
  std::memcpy(to, from, bytes);
#endif
}

Copied copy_within(const std::vector<iovec>& to, const std::vector<iovec>& from) {
  auto target = to.begin();
  std::size_t filled = 0;
  for (const auto& piece : from) {
    std::size_t taken = 0;
    while (taken < piece.iov_len) {
      if (filled == target->iov_len) {
        ++target;
        filled = 0;
        continue;
      }
      const std::size_t bytes = std::min(piece.iov_len - taken, target->iov_len - filled);
      copy_bytes(static_cast<char*>(target->iov_base) + filled,
                 static_cast<const char*>(piece.iov_base) + taken, bytes);
      taken += bytes;
      filled += bytes;
    }
  }
  return Copied::all;
}

std::size_t bytes_in(const std::vector<iovec>& pieces) {
  std::size_t bytes = 0;
  for (const auto& piece : pieces) bytes += piece.iov_len;
  return bytes;
}

// The bare system calls: the C library's functions are watched by the thread sanitizer, see above.
Copied copy_between(const std::vector<iovec>& own, const Segment& other, const std::vector<iovec>& there,
                    long system_call) {
  const std::size_t bytes = bytes_in(own);
  // Nothing to copy finds out nothing about the other process.
  if (bytes == 0) return other.alive() ? Copied::all : Copied::peer_gone;
  const long copied =
      ::syscall(system_call, other.pid(), own.data(), own.size(), there.data(), there.size(), 0L);
  if (copied == static_cast<long>(bytes)) return Copied::all;
  return copied < 0 && errno == ESRCH ? Copied::peer_gone : Copied::not_all;
}

}  // namespace

Copied copy_out(const std::vector<iovec>& own, const Segment& other, const std::vector<iovec>& there) {
  if (other.is_own()) return copy_within(there, own);
  return copy_between(own, other, there, SYS_process_vm_writev);
}

Copied copy_in(const std::vector<iovec>& own, const Segment& other, const std::vector<iovec>& there) {
  if (other.is_own()) return copy_within(own, there);
  return copy_between(own, other, there, SYS_process_vm_readv);
}

}  // namespace fakeverbs
