#include "harness/process_state.hpp"

#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEFT_ALLOCATIONS_ARE_KNOWN
#include <sanitizer/allocator_interface.h>
#endif
#endif

#include <array>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "harness/clock.hpp"

namespace conformance {
namespace {

namespace fs = std::filesystem;

std::size_t entries_in(const char* folder) {
  std::size_t count = 0;
  std::error_code error;
  for (auto entry = fs::directory_iterator(folder, error); entry != fs::directory_iterator();
       entry.increment(error)) {
    ++count;
  }
  return count;
}

std::string first_line(const fs::path& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), &pclose);
  std::string output;
  std::array<char, 4096> piece{};
  while (pipe != nullptr && fgets(piece.data(), piece.size(), pipe.get()) != nullptr) output += piece.data();
  return output;
}

pid_t group_of(pid_t process) {
  const std::string line = first_line("/proc/" + std::to_string(process) + "/stat");
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return -1;
  std::istringstream rest(line.substr(name_end + 1));
  std::string state;
  pid_t parent = 0;
  pid_t group = -1;
  rest >> state >> parent >> group;
  return group;
}

}  // namespace

Holdings holdings_of_this_process() { return {entries_in("/proc/self/fd"), entries_in("/proc/self/task")}; }

std::string open_descriptors() {
  std::string out;
  std::error_code error;
  for (auto entry = fs::directory_iterator("/proc/self/fd", error); entry != fs::directory_iterator();
       entry.increment(error)) {
    std::error_code gone;
    out +=
        "\n    " + entry->path().filename().string() + " " + fs::read_symlink(entry->path(), gone).string();
  }
  return out;
}

std::size_t resident_bytes(pid_t process) {
  std::ifstream in(process == 0 ? std::string("/proc/self/statm")
                                : "/proc/" + std::to_string(process) + "/statm");
  std::size_t total = 0;
  std::size_t resident = 0;
  in >> total >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

std::size_t held_bytes() {
#ifdef WEFT_ALLOCATIONS_ARE_KNOWN
  return __sanitizer_get_current_allocated_bytes();
#else
  return resident_bytes();
#endif
}

long long processor_time() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return time.tv_sec * 1'000'000'000LL + time.tv_nsec - canary_processor_time().count();
}

bool sleeps(pid_t thread) {
  constexpr int looks = 5;
  for (int i = 0; i < looks; ++i) {
    if (i > 0) pause(2ms);
    const std::string line = first_line("/proc/self/task/" + std::to_string(thread) + "/stat");
    const std::size_t state_at = line.rfind(')') + 2;  // behind the thread's name
    if (state_at >= line.size() || line[state_at] != 'S') return false;
  }
  return true;
}

std::vector<pid_t> members_of_group(pid_t group) {
  std::vector<pid_t> members;
  std::error_code error;
  for (auto entry = fs::directory_iterator("/proc", error); entry != fs::directory_iterator();
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const pid_t process = std::stoi(name);
    if (group_of(process) == group) members.push_back(process);
  }
  return members;
}

std::string stacks_of(pid_t process) {
  std::ostringstream out;
  const std::string folder = "/proc/" + std::to_string(process);
  out << "process " << process << '\n';
  std::error_code error;
  for (auto entry = fs::directory_iterator(folder + "/task", error); entry != fs::directory_iterator();
       entry.increment(error)) {
    const fs::path task = entry->path();
    out << "  thread " << task.filename().string() << " (" << first_line(task / "comm") << ") waits in "
        << first_line(task / "wchan") << ", system call " << first_line(task / "syscall") << '\n';
  }
  if (access("/usr/bin/gdb", X_OK) == 0) {
    // A stopped process stays stopped for its debugger, who would wait for ever.
    out << output_of("timeout -k 1 20 /usr/bin/gdb -p " + std::to_string(process) +
                     " -batch -nx -ex 'set width 0' -ex 'thread apply all backtrace 14' 2>/dev/null"
                     " | grep -E '^(Thread|#)'");
  }
  return out.str();
}

}  // namespace conformance
