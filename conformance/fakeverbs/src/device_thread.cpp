#include "device_thread.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <csignal>
#include <cstddef>

namespace fakeverbs {
namespace {

constexpr std::size_t stack_bytes = std::size_t{4} << 20;

}  // namespace

bool DeviceThread::start() {
  stack_ =
      ::mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (stack_ == MAP_FAILED) {
    stack_ = nullptr;
    return false;
  }
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstack(&attributes, stack_, stack_bytes);
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const auto enter = [](void* self) -> void* {
    static_cast<DeviceThread*>(self)->body_();
    return nullptr;
  };
  const int error = ::pthread_create(&thread_, &attributes, enter, this);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::pthread_attr_destroy(&attributes);
  if (error == 0) return true;
  ::munmap(stack_, stack_bytes);
  stack_ = nullptr;
  errno = error;
  return false;
}

void DeviceThread::join() {
  if (stack_ == nullptr) return;
  ::pthread_join(thread_, nullptr);
  ::munmap(stack_, stack_bytes);
  stack_ = nullptr;
}

}  // namespace fakeverbs
