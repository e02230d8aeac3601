#include "progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace perf {
namespace {

constexpr std::chrono::milliseconds redraw_time{200};
constexpr std::size_t bar_width = 30;

}  // namespace

Progress::Progress(std::size_t rows, std::chrono::seconds total)
    : rows_(rows), total_(total), terminal_(::isatty(STDERR_FILENO) == 1) {}

void Progress::start_row(std::size_t number, const std::string& text) {
  row_ = number;
  text_ = text;
  if (terminal_) {
    draw();
  } else {
    fmt::print(stderr, "[{:>2}/{}] {}\n", row_, rows_, text_);
  }
}

void Progress::tick() {
  if (terminal_ && Clock::now() - drawn_at_ > redraw_time) draw();
}

void Progress::clear() {
  if (visible_) fmt::print(stderr, "\r\x1b[K");
  visible_ = false;
  std::fflush(stderr);
}

void Progress::draw() {
  drawn_at_ = Clock::now();
  const std::chrono::duration<double> passed = drawn_at_ - start_;
  const double fraction = std::clamp(passed.count() / static_cast<double>(total_.count()), 0.0, 1.0);
  const auto filled = static_cast<std::size_t>(fraction * bar_width);
  fmt::print(stderr, "\r\x1b[K[{:#<{}}{:.<{}}] {:>3.0f} %  {}/{}  {}", "", filled, "", bar_width - filled,
             fraction * 100, row_, rows_, text_);
  visible_ = true;
  std::fflush(stderr);
}

}  // namespace perf
