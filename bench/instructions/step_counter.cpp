#include "step_counter.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "decode.hpp"

namespace instructions {
namespace {

// The tracer stops stepping when it arrives here.
[[gnu::noinline]] void end_of_steps() { asm volatile(""); }

constexpr int child_failed = 3;

[[noreturn]] void run_child(const std::function<std::unique_ptr<Subject>()>& make, int times, int words) {
  try {
    const auto subject = make();
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) {
      throw std::runtime_error(fmt::format("this process may not be traced: {}", std::strerror(errno)));
    }
    for (int i = 0; i < times; ++i) {
      subject->prepare();
      asm volatile("int3");
      subject->act();
      end_of_steps();
    }
  } catch (const std::exception& error) {
    const std::string text = error.what();
    (void)!::write(words, text.data(), text.size());
    ::_exit(child_failed);
  }
  ::_exit(0);
}

struct Range {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t offset = 0;  // of its begin in the file
  std::string file;
};

// Where weft's code lies: its library, its plug-ins.
std::vector<Range> weft_code(pid_t process) {
  std::vector<Range> ranges;
  std::ifstream maps(fmt::format("/proc/{}/maps", process));
  for (std::string line; std::getline(maps, line);) {
    const std::size_t name = line.find('/');
    if (name == std::string::npos || line.find('x') > line.find(' ', line.find(' ') + 1)) continue;
    const std::size_t file = line.rfind('/') + 1;
    if (line.compare(file, 10, "libweft.so") != 0 && line.compare(file, 14, "weft-provider-") != 0) continue;
    Range range;
    char dash = 0;
    std::string rights;
    std::istringstream(line) >> std::hex >> range.begin >> dash >> range.end >> rights >> range.offset;
    range.file = line.substr(name);
    ranges.push_back(range);
  }
  return ranges;
}

std::unordered_set<std::uint64_t> allocator_entries() {
  std::unordered_set<std::uint64_t> entries;
  for (const char* const name : {"malloc", "calloc", "realloc", "aligned_alloc", "posix_memalign"}) {
    entries.insert(reinterpret_cast<std::uintptr_t>(::dlsym(RTLD_DEFAULT, name)));
  }
  return entries;
}

class Tracer {
 public:
  explicit Tracer(pid_t process) : process_(process), allocators_(allocator_entries()) {}

  // From the child's int3 to its arrival at end_of_steps.
  StepCount step_through() {
    code_.clear();
    weft_ = weft_code(process_);
    if (weft_.empty()) throw std::runtime_error("weft's library is not in the traced process");
    StepCount count;
    const std::uint64_t end = reinterpret_cast<std::uintptr_t>(&end_of_steps);
    std::uint64_t last = 0;
    while (true) {
      step();
      user_regs_struct registers{};
      if (::ptrace(PTRACE_GETREGS, process_, nullptr, &registers) != 0)
        throw std::runtime_error("the traced process is gone");
      if (registers.rip == end) return count;
      // A repeated string instruction stops after each turn.
      if (registers.rip == last) continue;
      last = registers.rip;
      note(count, registers);
    }
  }

 private:
  void note(StepCount& count, const user_regs_struct& registers) {
    ++count.all;
    if (allocators_.count(registers.rip) != 0) ++count.allocations;
    const auto range = std::find_if(weft_.begin(), weft_.end(), [&](const Range& one) {
      return registers.rip >= one.begin && registers.rip < one.end;
    });
    const bool in_weft = range != weft_.end();
    if (in_weft) {
      ++count.weft;
      count.steps.push_back({range->file, registers.rip - range->begin + range->offset});
    }
    const InstructionKind kind = kind_at(registers.rip);
    if (kind == InstructionKind::locked && in_weft) ++count.locked;
    if (kind == InstructionKind::system_call) ++count.system_calls[static_cast<long>(registers.rax)];
  }

  InstructionKind kind_at(std::uint64_t address) {
    const auto [place, is_new] = code_.try_emplace(address, InstructionKind::plain);
    if (is_new) {
      std::array<std::uint8_t, 15> bytes{};
      const iovec local{bytes.data(), bytes.size()};
      const iovec remote{reinterpret_cast<void*>(address), bytes.size()};
      const ssize_t length = ::process_vm_readv(process_, &local, 1, &remote, 1, 0);
      if (length > 0) place->second = kind_of({bytes.data(), static_cast<std::size_t>(length)});
    }
    return place->second;
  }

  void step() {
    while (true) {
      if (::ptrace(PTRACE_SINGLESTEP, process_, nullptr, signal_) != 0)
        throw std::runtime_error("the traced process cannot be stepped");
      signal_ = 0;
      int status = 0;
      if (::waitpid(process_, &status, 0) != process_ || !WIFSTOPPED(status))
        throw std::runtime_error("the traced process ended between its marks");
      if (WSTOPSIG(status) == SIGTRAP) return;
      signal_ = WSTOPSIG(status);  // somebody else's: hand it on
    }
  }

  pid_t process_;
  int signal_ = 0;
  std::unordered_set<std::uint64_t> allocators_;
  std::vector<Range> weft_;
  std::unordered_map<std::uint64_t, InstructionKind> code_;
};

// Runs the child on until its next int3. False when it ended.
bool run_to_mark(pid_t process, bool started, int& status) {
  int signal = 0;
  while (true) {
    if (started && ::ptrace(PTRACE_CONT, process, nullptr, signal) != 0) return false;
    started = true;
    if (::waitpid(process, &status, 0) != process || !WIFSTOPPED(status)) return false;
    if (WSTOPSIG(status) == SIGTRAP) return true;
    signal = WSTOPSIG(status);
  }
}

}  // namespace

int StepCount::system_call_count() const {
  int sum = 0;
  for (const auto& [number, times] : system_calls) sum += times;
  return sum;
}

std::vector<StepCount> count_steps(const std::function<std::unique_ptr<Subject>()>& make, int times) {
  std::array<int, 2> words{};
  if (::pipe(words.data()) != 0) throw std::runtime_error("no pipe to the process to be traced");
  const pid_t process = ::fork();
  if (process < 0) throw std::runtime_error("the process to be traced could not be made");
  if (process == 0) {
    ::close(words[0]);
    run_child(make, times, words[1]);
  }
  ::close(words[1]);
  std::vector<StepCount> counts;
  int status = 0;
  std::string failure;
  try {
    Tracer tracer(process);
    for (bool started = false; run_to_mark(process, started, status); started = true)
      counts.push_back(tracer.step_through());
  } catch (const std::exception& error) {
    failure = error.what();
    ::kill(process, SIGKILL);
    ::waitpid(process, &status, 0);
  }
  std::array<char, 512> text{};
  const ssize_t length = ::read(words[0], text.data(), text.size());
  ::close(words[0]);
  if (length > 0) failure = std::string(text.data(), static_cast<std::size_t>(length));
  if (failure.empty() && static_cast<int>(counts.size()) != times) {
    failure = fmt::format("the traced process ended early, wait status {}", status);
  }
  if (!failure.empty()) throw std::runtime_error(failure);
  return counts;
}

StepCount undisturbed(const std::vector<StepCount>& counts) {
  const auto disturbance = [](const StepCount& count) {
    return std::tuple(count.locked, count.allocations, count.system_call_count(), count.weft, count.all);
  };
  return *std::min_element(counts.begin(), counts.end(), [&](const StepCount& a, const StepCount& b) {
    return disturbance(a) < disturbance(b);
  });
}

}  // namespace instructions
