// Where trace's lines go: a file, or weft's log at level `trace`.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <cstdio>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "weft/provider/provider.hpp"

namespace weft::trace {

class Log {
 public:
  // Opens WEFT_TRACE_FILE when it is set. Throws Error(invalid_argument) when it cannot be written.
  explicit Log(provider::Host& host);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  // Whether anybody reads the lines; when not, tracing costs this question.
  [[nodiscard]] bool on() const noexcept {
    return !inert_.load(std::memory_order_relaxed) && (file_ != nullptr || host_.logs(LogLevel::trace));
  }
  template <class... Arguments>
  void line(fmt::format_string<Arguments...> format, Arguments&&... arguments) noexcept {
    try {
      write(fmt::format(format, std::forward<Arguments>(arguments)...));
    } catch (...) {  // out of memory: the program goes on, a line is missing
      missing_.store(true, std::memory_order_relaxed);
    }
  }
  // In a forked child, where the lock may be held for ever.
  void silence() noexcept { inert_.store(true, std::memory_order_relaxed); }

 private:
  void write(const std::string& text);

  provider::Host& host_;
  std::FILE* file_ = nullptr;
  std::mutex mutex_;
  std::atomic<bool> inert_{false};
  std::atomic<bool> missing_{false};
};

}  // namespace weft::trace
