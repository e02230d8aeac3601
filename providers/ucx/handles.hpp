// UCX's objects, owned.
#pragma once

#include <ucp/api/ucp.h>

#include <csignal>
#include <memory>
#include <string>
#include <type_traits>

namespace weft::ucx {

struct Release {
  void operator()(ucp_context_h context) const noexcept { ucp_cleanup(context); }
  void operator()(ucp_worker_h worker) const noexcept { ucp_worker_destroy(worker); }
  void operator()(ucp_config_t* config) const noexcept { ucp_config_release(config); }
};

using ContextHandle = std::unique_ptr<std::remove_pointer_t<ucp_context_h>, Release>;
using WorkerHandle = std::unique_ptr<std::remove_pointer_t<ucp_worker_h>, Release>;
using ConfigHandle = std::unique_ptr<ucp_config_t, Release>;

// UCX starts a thread of its own with the first worker; it inherits the mask of whoever makes that, so that
// no signal of the program's ends there (ERR-6).
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

// Throws Error: "ucp_init failed: Out of memory"; resource_limit where that is why.
[[noreturn]] void refuse(const char* call, ucs_status_t code);

}  // namespace weft::ucx
