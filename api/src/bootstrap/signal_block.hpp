// A fabric's library may start threads of its own inside a call; they inherit the caller's signal mask and
// must not take the program's signals (ERR-6).
#pragma once

#include <csignal>

namespace weft::core {

// Blocks all signals for the calling thread while it lives.
class SignalBlock {
 public:
  SignalBlock() noexcept {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalBlock() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalBlock(const SignalBlock&) = delete;
  SignalBlock& operator=(const SignalBlock&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace weft::core
