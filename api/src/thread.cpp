#include "thread.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <csignal>
#include <system_error>
#include <utility>

#include "weft/status.hpp"

namespace weft::core {

std::thread start_thread(const char* name, std::function<void()> work) {
  // Blocked before the thread exists, so that it never takes one; it inherits the mask.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  // Faults of the thread itself must still reach the program's handlers and the sanitizers'.
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS}) sigdelset(&all, fault);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread;
  std::error_code failure;
  try {
    thread = std::thread([name, work = std::move(work)] {
      // By the thread itself, so that it never runs under the program's name.
      pthread_setname_np(pthread_self(), name);
      work();
    });
  } catch (const std::system_error& error) {
    failure = error.code();
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (failure) {
    throw Error(Status::resource_limit,
                fmt::format("cannot start the thread {}: {}; the limit is that of processes and threads "
                            "(ulimit -u, or pids.max of the control group)",
                            name, failure.message()));
  }
  return thread;
}

}  // namespace weft::core
