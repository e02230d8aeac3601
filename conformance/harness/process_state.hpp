// What the kernel knows about processes: for leak checks, and for telling where a hung test stands.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

namespace conformance {

struct Holdings {
  std::size_t descriptors = 0;
  std::size_t threads = 0;
};
[[nodiscard]] Holdings holdings_of_this_process();
// One line per open descriptor, for the text of a failure.
[[nodiscard]] std::string open_descriptors();
[[nodiscard]] std::size_t resident_bytes(pid_t process = 0);
// Memory of this process that is held: resident bytes, or under the address sanitizer, which keeps what is
// freed for a while, the bytes that are allocated.
[[nodiscard]] std::size_t held_bytes();
// Processor time used so far by this process but not by its canary, in nanoseconds.
[[nodiscard]] long long processor_time();

// Whether this thread of the calling process waits for something, as far as can be seen in a few looks.
[[nodiscard]] bool sleeps(pid_t thread);

[[nodiscard]] std::vector<pid_t> members_of_group(pid_t group);
// Where every thread of the process stands; with gdb's stacks where gdb is installed.
[[nodiscard]] std::string stacks_of(pid_t process);

}  // namespace conformance
