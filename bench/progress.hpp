// How far a run is, on standard error: a bar on a terminal, a line per row otherwise.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace perf {

class Progress {
 public:
  Progress(std::size_t rows, std::chrono::seconds total);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { clear(); }

  void start_row(std::size_t number, const std::string& text);
  /// Redraws the bar now and then; cheap to call often.
  void tick();
  /// Takes the bar off the screen, so that something else can be printed.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  void draw();

  std::size_t rows_;
  std::chrono::seconds total_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point drawn_at_;
  std::size_t row_ = 0;
  std::string text_;
  bool terminal_;
  bool visible_ = false;
};

}  // namespace perf
