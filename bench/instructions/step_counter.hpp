// Counts the instructions a piece of code runs, exactly, by stepping a child process through it: how many
// there are and in whose code, locked ones, allocations, system calls. Needs no special build and no hardware
// counters, and does not depend on what else the machine does.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace instructions {

/// An instruction in weft's code: the file it lies in and where there, as addr2line takes it.
struct Step {
  std::string file;
  std::uint64_t offset = 0;
};

struct StepCount {
  std::uint64_t all = 0;               ///< In whatever code, the kernel apart.
  std::uint64_t weft = 0;              ///< In libweft and in providers; not what is inline in the program.
  std::uint64_t locked = 0;            ///< With a lock prefix or an exchange with memory, in weft's code.
  std::uint64_t allocations = 0;       ///< Calls of malloc and its kin, from anywhere.
  std::map<long, int> system_calls{};  ///< By number.
  std::vector<Step> steps{};           ///< Those in libweft and in providers, in order.

  [[nodiscard]] int system_call_count() const;
};

/// What runs in the child: `prepare` untraced, then `act` traced.
class Subject {
 public:
  virtual ~Subject() = default;
  virtual void prepare() = 0;
  virtual void act() = 0;
};

/// Forks; in the child makes the subject, and prepares and steps it `times` times. Throws std::runtime_error
/// with the child's words when it fails. x86-64 only.
[[nodiscard]] std::vector<StepCount> count_steps(const std::function<std::unique_ptr<Subject>()>& make,
                                                 int times);

/// Of several counts the one with the fewest locked instructions, allocations, system calls, instructions, in
/// this order: the others woke or met the helper thread, or bound a symbol at its first use. What a call
/// always does is in all.
[[nodiscard]] StepCount undisturbed(const std::vector<StepCount>& counts);

}  // namespace instructions
