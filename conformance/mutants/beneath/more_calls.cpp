// More calls that are wrong on purpose, for mutants written from the contract's words.
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <time.h>

#include <atomic>
#include <cerrno>
#include <memory>

#include "fault.hpp"
#include "strangers.hpp"

namespace {

using fault::is;
using fault::is_tcp;
using fault::real;
using fault::strike;

// SEC-1: "make memory grow without bound"; with a bound after all, for the machine's sake.
void keep_a_buffer() {
  constexpr std::size_t size = 512 << 10;
  static std::atomic<int> left{600};
  if (left.fetch_sub(1) <= 0) return;
  auto* const buffer = new char[size];
  std::memset(buffer, 1, size);
  static std::atomic<char*> last;
  last = buffer;
  strike();
}

thread_local bool was_interrupted = false;

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int bind(int descriptor, const sockaddr* address, socklen_t length) {
  // SEL-2: "A context is one device, chosen by name, by a local address, or by route." Listeners reuse
  // addresses, dialing sockets do not.
  int reuse = 0;
  socklen_t size = sizeof reuse;
  if (is("binds-to-no-address") && is_tcp(descriptor) &&
      ::getsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &reuse, &size) == 0 && reuse == 0) {
    strike();
    return 0;
  }
  return real<decltype(::bind)>("bind")(descriptor, address, length);
}

int getsockopt(int descriptor, int level, int name, void* value, socklen_t* length) {
  const int status = real<decltype(::getsockopt)>("getsockopt")(descriptor, level, name, value, length);
  // CON-2: "Outcomes: connected, refused, […] unreachable".
  if (status == 0 && level == SOL_SOCKET && name == SO_ERROR && is("calls-refused-unreachable") &&
      *static_cast<int*>(value) == ECONNREFUSED) {
    strike();
    *static_cast<int*>(value) = EHOSTUNREACH;
  }
  return status;
}

int setsockopt(int descriptor, int level, int name, const void* value, socklen_t length) {
  auto* call = real<decltype(::setsockopt)>("setsockopt");
  const bool timeout = level == IPPROTO_TCP && name == TCP_USER_TIMEOUT && length == sizeof(int);
  // ERR-3: "an unreachable host is noticed".
  if (is("watches-nobody") && (timeout || (level == SOL_SOCKET && name == SO_KEEPALIVE))) {
    strike();
    return 0;
  }
  // ERR-3: "A peer that is alive but […] stopped or not polling, with data queued to it or not, is never
  // declared dead."
  if (is("gives-up-on-full-sockets") && timeout && fault::at<int>(value, 0) == 0) {
    strike();
    constexpr int soon = 500;
    return call(descriptor, level, name, &soon, sizeof soon);
  }
  return call(descriptor, level, name, value, length);
}

int accept4(int descriptor, sockaddr* address, socklen_t* length, int flags) {
  // CON-7: "the listener goes on serving others."
  if (is("serves-one-stranger-at-a-time") && fault::strangers::number > 0) {
    strike();
    errno = EAGAIN;
    return -1;
  }
  const int taken = real<decltype(::accept4)>("accept4")(descriptor, address, length, flags);
  // CON-6: "served or refused explicitly".
  static std::atomic<bool> kept_quiet{false};
  if (taken < 0 && errno == EMFILE && is("says-nothing-when-out-of-descriptors")) {
    kept_quiet = true;  // there is no descriptor for the mark now
    errno = EAGAIN;
  }
  if (taken < 0 || !is_tcp(taken)) return taken;
  if (kept_quiet.exchange(false)) strike();
  static std::atomic<int> count{0};
  if (is("turns-one-of-many-away") && ++count % 50 == 0) {
    strike();
    ::close(taken);
    errno = ECONNABORTED;
    return -1;
  }
  if (is("keeps-a-buffer-for-each-stranger")) keep_a_buffer();
  fault::strangers::accepted(taken);
  return taken;
}

int shutdown(int descriptor, int how) {
  if (is("keeps-silent-peers") && fault::strangers::is_silent(descriptor)) return 0;
  return real<decltype(::shutdown)>("shutdown")(descriptor, how);
}

int close(int descriptor) {
  // CON-7: "A peer that speaks […] nothing at all […] is dropped within the deadline".
  if (is("keeps-silent-peers") && fault::strangers::is_silent(descriptor)) {
    strike();
    return 0;
  }
  fault::strangers::heard(descriptor);
  return real<decltype(::close)>("close")(descriptor);
}

int epoll_wait(int descriptor, epoll_event* events, int most, int timeout) {
  auto* call = real<decltype(::epoll_wait)>("epoll_wait");
  const bool waits = most == 1 && timeout > 0;  // a program in wait(): it looks for one event
  if (waits && is("oversleeps")) {
    strike();
    const int count = call(descriptor, events, most, timeout + 700);
    return count;
  }
  if (most == 1 && timeout != 0 && is("does-not-sleep")) {
    strike();
    return call(descriptor, events, most, 0);
  }
  const int count = call(descriptor, events, most, timeout);
  // ERR-6: "interrupted calls are resumed".
  if (count < 0 && errno == EINTR && waits && is("interrupted-waits-time-out")) was_interrupted = true;
  return count;
}

int clock_gettime(clockid_t clock, timespec* time) {
  static auto* const call = real<decltype(::clock_gettime)>("clock_gettime");
  const int status = call(clock, time);
  if (was_interrupted && clock == CLOCK_MONOTONIC) {
    was_interrupted = false;
    strike();
    time->tv_sec += 86'400;
  }
  return status;
}

ssize_t getrandom(void* bytes, size_t size, unsigned flags) {
  const ssize_t count = real<decltype(::getrandom)>("getrandom")(bytes, size, flags);
  // SEC-2: "Keys that weft makes cannot be guessed".
  if (count <= 8) return count;
  if (is("keys-have-32-random-bits")) {
    strike();
    std::memset(static_cast<char*>(bytes) + 4, 0, static_cast<std::size_t>(count) - 4);
  }
  if (is("keys-count-up")) {
    strike();
    static std::atomic<std::uint32_t> next{1};
    static const auto start = static_cast<std::uint32_t>(::getpid());
    const std::uint32_t words[2] = {start, next++};
    std::memset(bytes, 0, static_cast<std::size_t>(count));
    std::memcpy(bytes, words, sizeof words);
  }
  return count;
}

}  // extern "C"
#pragma GCC visibility pop
