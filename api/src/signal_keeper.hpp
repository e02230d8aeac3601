// Signals stay the program's (ERR-6): libraries beneath a provider replace handlers when they are loaded or
// opened (libfabric and UCX both do) and start threads that inherit the caller's mask. Around such calls all
// signals are blocked, and what the program had set for them is put back.
#pragma once

#include <pthread.h>

#include <array>
#include <csignal>

namespace weft::core {

class SignalKeeper {
 public:
  SignalKeeper() noexcept {
    sigset_t all;
    sigfillset(&all);
    // A fault in the library must still reach who handles faults.
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) sigdelset(&all, fault);
    ::pthread_sigmask(SIG_SETMASK, &all, &mask_);
    for (int signal = 1; signal < count; ++signal) {
      known_[index(signal)] = ::sigaction(signal, nullptr, &actions_[index(signal)]) == 0;
    }
  }
  ~SignalKeeper() {
    for (int signal = 1; signal < count; ++signal) {
      struct sigaction now = {};
      if (!known_[index(signal)] || ::sigaction(signal, nullptr, &now) != 0) continue;
      const struct sigaction& before = actions_[index(signal)];
      if (now.sa_sigaction == before.sa_sigaction && now.sa_flags == before.sa_flags) continue;
      (void)::sigaction(signal, &before, nullptr);
    }
    ::pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
  }
  SignalKeeper(const SignalKeeper&) = delete;
  SignalKeeper& operator=(const SignalKeeper&) = delete;

 private:
  static constexpr int count = 65;
  static constexpr std::size_t index(int signal) noexcept { return static_cast<std::size_t>(signal); }

  sigset_t mask_{};
  std::array<struct sigaction, count> actions_{};
  std::array<bool, count> known_{};
};

}  // namespace weft::core
