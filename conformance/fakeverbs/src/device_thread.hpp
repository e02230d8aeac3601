// A thread with a stack of its own. The C library gives the stacks of a parent's threads to those of its
// forked child, which the thread sanitizer then takes for the parent's threads.
#pragma once

#include <pthread.h>

#include <functional>
#include <utility>

namespace fakeverbs {

class DeviceThread {
 public:
  explicit DeviceThread(std::function<void()> body) : body_(std::move(body)) {}
  DeviceThread(const DeviceThread&) = delete;
  DeviceThread& operator=(const DeviceThread&) = delete;
  // False and errno when there cannot be a thread. No signal of the program is handled in it.
  [[nodiscard]] bool start();
  void join();

 private:
  std::function<void()> body_;
  void* stack_ = nullptr;
  pthread_t thread_{};
};

}  // namespace fakeverbs
