// Does pieces of work in order, several at a time, ahead of the one who asks for them one by one.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace conformance {

class Ahead {
 public:
  // Starts at once. `work` is called with 0, 1, … from `at_once` threads; it must not throw.
  Ahead(std::size_t count, unsigned at_once, std::function<void(std::size_t)> work);
  // Waits for what has been started; starts nothing more.
  ~Ahead();
  Ahead(const Ahead&) = delete;
  Ahead& operator=(const Ahead&) = delete;

  // Until that piece is done.
  void wait_for(std::size_t index);

 private:
  void run();

  const std::function<void(std::size_t)> work_;
  std::mutex mutex_;
  std::condition_variable done_one_;
  std::vector<bool> done_;
  std::size_t next_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace conformance
