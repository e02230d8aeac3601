#include "registry.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "shared.hpp"

namespace fakeverbs {
namespace {

using Members = std::array<Member, max_processes>;

std::string path_of(const std::string& network) {
  return "/dev/shm/weft-fakeverbs-" + std::to_string(::getuid()) + "-" + network;
}

// The registry's file. With `lock`, nobody else changes it meanwhile.
class File {
 public:
  File(const std::string& network, bool lock) : path_(path_of(network)) {
    while (true) {
      descriptor_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC | (lock ? O_CREAT : 0), 0600);
      if (descriptor_ < 0 || !lock) return;
      while (::flock(descriptor_, LOCK_EX) != 0 && errno == EINTR) {
      }
      if (is_current()) return;
      // Its last member removed it while we waited for the lock.
      ::close(descriptor_);
    }
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  [[nodiscard]] explicit operator bool() const { return descriptor_ >= 0; }

  [[nodiscard]] Members read() const {
    Members members{};
    // A new file is empty: nobody is there.
    if (::pread(descriptor_, members.data(), sizeof members, 0) < 0) members = {};
    return members;
  }
  [[nodiscard]] bool write(const Members& members) const {
    return ::pwrite(descriptor_, members.data(), sizeof members, 0) == static_cast<ssize_t>(sizeof members);
  }
  void remove() const { ::unlink(path_.c_str()); }

 private:
  [[nodiscard]] bool is_current() const {
    struct stat opened {};
    struct stat named {};
    return ::fstat(descriptor_, &opened) == 0 && ::stat(path_.c_str(), &named) == 0 &&
           opened.st_ino == named.st_ino;
  }
  std::string path_;
  int descriptor_ = -1;
};

bool is_taken(const Member& member) { return member.process.pid != 0 && is_alive(member.process); }

}  // namespace

std::optional<std::uint32_t> join(const std::string& network, std::uint32_t descriptor) {
  const File file(network, true);
  if (!file) return std::nullopt;
  auto members = file.read();
  const auto self = own_incarnation();
  // A slot that was free for long is better than one just left: numbers of old queue pairs are not used again
  // soon.
  for (std::uint32_t step = 0; step < max_processes; ++step) {
    const std::uint32_t slot = (self.pid + step) % max_processes;
    if (is_taken(members[slot])) continue;
    members[slot] = {self, descriptor};
    if (!file.write(members)) return std::nullopt;
    return slot;
  }
  errno = EUSERS;
  return std::nullopt;
}

void leave(const std::string& network, std::uint32_t slot) {
  const File file(network, true);
  if (!file) return;
  auto members = file.read();
  if (members[slot].process == own_incarnation()) members[slot] = {};
  bool empty = true;
  for (const auto& member : members) empty = empty && !is_taken(member);
  if (empty) {
    file.remove();
  } else {
    static_cast<void>(file.write(members));
  }
}

std::optional<Member> find_member(const std::string& network, std::uint32_t slot) {
  const File file(network, false);
  if (!file || slot >= max_processes) return std::nullopt;
  const auto members = file.read();
  if (!is_taken(members[slot])) return std::nullopt;
  return members[slot];
}

bool slot_may_be_alive(const std::string& network, std::uint32_t slot) {
  const File file(network, false);
  return !file || slot >= max_processes || is_taken(file.read()[slot]);
}

}  // namespace fakeverbs
