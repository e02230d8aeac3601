#include "liveness.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <string>
#include <string_view>

namespace fakeverbs {
namespace {

struct ProcessStatus {
  char state = 0;  // 0: there is none
  std::uint64_t start_time = 0;
};

constexpr char unknown = '?';

ProcessStatus read_status(std::uint32_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/stat";
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  // Only what is not there is dead; a program that has used up its descriptors cannot tell.
  if (file < 0) return {.state = errno == ENOENT || errno == ESRCH ? '\0' : unknown};
  std::array<char, 1024> buffer;
  const ssize_t got = ::read(file, buffer.data(), buffer.size());
  ::close(file);
  if (got <= 0) return {};
  // The second field, the name, may hold anything; what follows its last parenthesis is regular.
  std::string_view text(buffer.data(), static_cast<std::size_t>(got));
  const auto name_end = text.rfind(')');
  if (name_end == std::string_view::npos || name_end + 3 >= text.size()) return {};
  text.remove_prefix(name_end + 2);
  ProcessStatus status{.state = text.front()};
  constexpr int fields_to_start_time = 19;
  for (int field = 0; field < fields_to_start_time; ++field) {
    const auto space = text.find(' ');
    if (space == std::string_view::npos) return {};
    text.remove_prefix(space + 1);
  }
  std::from_chars(text.data(), text.data() + text.size(), status.start_time);
  return status;
}

}  // namespace

Incarnation own_incarnation() {
  const auto pid = static_cast<std::uint32_t>(::getpid());
  return {pid, read_status(pid).start_time};
}

bool is_alive(const Incarnation& process) {
  const auto status = read_status(process.pid);
  if (status.state == unknown) return true;
  return status.state != 0 && status.state != 'Z' && status.state != 'X' &&
         status.start_time == process.start_time;
}

bool is_stopped(std::uint32_t pid) {
  const char state = read_status(pid).state;
  return state == 'T' || state == 't';
}

}  // namespace fakeverbs
