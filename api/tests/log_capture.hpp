// Collects weft's log lines while it lives.
#pragma once

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "weft/log.hpp"

namespace weft::test {

class LogCapture {
 public:
  explicit LogCapture(LogLevel level = LogLevel::info) : level_before_(log_level()) {
    set_log_level(level);
    set_log_sink([this](LogLevel line_level, std::string_view line) {
      const std::lock_guard lock(mutex_);
      lines_.emplace_back(line_level, line);
    });
  }
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;
  ~LogCapture() {
    set_log_sink({});
    set_log_level(level_before_);
  }

  [[nodiscard]] std::vector<std::string> lines(LogLevel level) const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> result;
    for (const auto& [line_level, line] : lines_) {
      if (line_level == level) result.push_back(line);
    }
    return result;
  }

  // Warnings that hold the text.
  [[nodiscard]] std::vector<std::string> warnings(std::string_view about = {}) const {
    std::vector<std::string> result = lines(LogLevel::warning);
    std::erase_if(result, [&](const std::string& line) { return line.find(about) == std::string::npos; });
    return result;
  }

  void clear() {
    const std::lock_guard lock(mutex_);
    lines_.clear();
  }

 private:
  LogLevel level_before_;
  mutable std::mutex mutex_;
  std::vector<std::pair<LogLevel, std::string>> lines_;
};

}  // namespace weft::test
