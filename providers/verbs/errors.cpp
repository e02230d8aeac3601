#include "errors.hpp"

#include <sys/resource.h>

#include <cerrno>
#include <cstring>

namespace weft::verbs {

namespace {

Status status_of(int code) noexcept {
  switch (code) {
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case ENOSPC:
    case EAGAIN:
      return Status::resource_limit;
    case EINVAL:
    case EFAULT:
      return Status::invalid_argument;
    case ENODEV:
    case EIO:
      return Status::unavailable;
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH:
      return Status::unreachable;
    case EOPNOTSUPP:
    case ENOSYS:
      return Status::unsupported;
    default:
      return Status::system_error;
  }
}

std::string amount(rlim_t value) {
  return value == RLIM_INFINITY ? "unlimited" : std::to_string(value) + " bytes";
}

}  // namespace

std::string text_of(int code) { return std::strerror(code); }

void fail_call(const std::string& what, int code, const std::string& advice) {
  std::string text = what + ": " + text_of(code);
  if (!advice.empty()) text += "; " + advice;
  throw Error(status_of(code), text);
}

void fail_registration(std::uint64_t length, int code) {
  const std::string what = "cannot register " + std::to_string(length) + " bytes with the device";
  if (code == EFAULT) {
    throw Error(Status::invalid_argument,
                what +
                    ": part of the range is not mapped, or is mapped without the rights that the access "
                    "asked for needs (memory that is read-only can be registered with Access::none or "
                    "Access::remote_read)");
  }
  if (code == ENOMEM || code == EAGAIN || code == EPERM) {
    rlimit locked{};
    getrlimit(RLIMIT_MEMLOCK, &locked);
    if (locked.rlim_cur != RLIM_INFINITY) {
      throw Error(Status::resource_limit,
                  what + ": the limit of locked memory (RLIMIT_MEMLOCK, `ulimit -l`) is " +
                      amount(locked.rlim_cur) +
                      ", of which other registrations and queues may hold a part; " + std::to_string(length) +
                      " bytes were asked for; raise it, in /etc/security/limits.conf or by "
                      "LimitMEMLOCK= of the service");
    }
    throw Error(Status::resource_limit, what + ": " + text_of(code) +
                                            " (the limit of locked memory is unlimited; the device or the "
                                            "kernel is out of memory)");
  }
  fail_call(what, code);
}

}  // namespace weft::verbs
