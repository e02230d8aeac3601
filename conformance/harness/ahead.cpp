#include "harness/ahead.hpp"

#include <utility>

namespace conformance {

Ahead::Ahead(std::size_t count, unsigned at_once, std::function<void(std::size_t)> work)
    : work_(std::move(work)), done_(count, false) {
  for (unsigned i = 0; i < at_once; ++i) threads_.emplace_back([this] { run(); });
}

Ahead::~Ahead() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

void Ahead::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_ && next_ < done_.size()) {
    const std::size_t mine = next_++;
    lock.unlock();
    work_(mine);
    lock.lock();
    done_[mine] = true;
    done_one_.notify_all();
  }
}

void Ahead::wait_for(std::size_t index) {
  std::unique_lock lock(mutex_);
  done_one_.wait(lock, [&] { return done_[index]; });
}

}  // namespace conformance
