// Makes processes. Forked at the very beginning of main, while the program has one thread and no weft object,
// so that every test and every peer starts as clean as a fresh program, whatever happened before; and a test
// that crashes or hangs takes nothing with it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>

#include "harness/channel.hpp"
#include "harness/check.hpp"

namespace conformance {

// What a new process runs. All of them share one image, so that a function's address is good in each.
using ProcessBody = void (*)(Channel& control, const std::string& arguments);

struct Process {
  pid_t id = -1;
  Channel control;
};

// Forks the server; call it first, and once.
void start_fork_server();

// A new process that runs `body`, in a process group of its own, or in the given one.
[[nodiscard]] Process start_process(ProcessBody body, const std::string& arguments, pid_t group = 0);

// The server is reached in the network in which it was made. A process that is about to leave that network
// makes the sockets for so many processes to come before it goes.
void reserve_processes(std::size_t count);

// In words, from the `exited` message; empty when it ended as it should.
[[nodiscard]] std::string exit_in_words(const std::string& exited);

}  // namespace conformance
