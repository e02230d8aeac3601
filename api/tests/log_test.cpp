#include "log.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <functional>
#include <thread>

#include "expect_error.hpp"
#include "host.hpp"
#include "log_capture.hpp"
#include "set_variable.hpp"

namespace weft {
// A value whose formatting can be observed.
struct Observed {
  int* formatted;
};
}  // namespace weft

template <>
struct fmt::formatter<weft::Observed> {
  constexpr auto parse(format_parse_context& context) { return context.begin(); }
  template <typename Context>
  auto format(const weft::Observed& value, Context& context) const {
    ++*value.formatted;
    return context.out();
  }
};

namespace weft {
namespace {

using core::log;
using test::LogCapture;

// What is written to standard error meanwhile; at most what a pipe holds.
std::string standard_error_of(const std::function<void()>& work) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const int before = ::dup(STDERR_FILENO);
  ::dup2(ends[1], STDERR_FILENO);
  work();
  ::dup2(before, STDERR_FILENO);
  ::close(before);
  ::close(ends[1]);
  std::string text;
  std::array<char, 4096> piece{};
  for (ssize_t got = 0; (got = ::read(ends[0], piece.data(), piece.size())) > 0;) {
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  return text;
}

class Log : public ::testing::Test {
 protected:
  Log() : level_before_(log_level()) {}
  ~Log() override {
    set_log_sink({});
    set_log_level(level_before_);
  }

 private:
  LogLevel level_before_;
};

TEST_F(Log, TheDefaultIsOneLineOnStandardError) {
  set_log_level(LogLevel::info);
  const std::string text = standard_error_of([] {
    log(LogLevel::warning, "cannot {} {}", "open", 7);
    log(LogLevel::info, "fine");
    log(LogLevel::debug, "not shown");
  });
  EXPECT_EQ(text, "weft: warning: cannot open 7\nweft: info: fine\n");
}

TEST_F(Log, ControlCharactersCannotForgeALine) {
  const LogCapture capture;
  log(LogLevel::warning, "peer said {}", std::string_view("a\nweft: error: b\x1b[0m\0", 21));
  ASSERT_EQ(capture.warnings().size(), 1U);
  EXPECT_EQ(capture.warnings()[0], "peer said a\\nweft: error: b\\x1b[0m\\x00");
}

TEST_F(Log, OffSilencesEverything) {
  set_log_level(LogLevel::off);
  const std::string text = standard_error_of([] { log(LogLevel::error, "not shown"); });
  EXPECT_EQ(text, "");
  EXPECT_FALSE(core::logs(LogLevel::off));
  set_log_level(LogLevel::trace);
  EXPECT_TRUE(core::logs(LogLevel::trace));
  EXPECT_FALSE(core::logs(LogLevel::off));
}

TEST_F(Log, LevelsBelowAreNotEvenFormatted) {
  int formatted = 0;
  const LogCapture capture(LogLevel::warning);
  EXPECT_EQ(log_level(), LogLevel::warning);
  log(LogLevel::info, "{}", Observed{&formatted});
  EXPECT_EQ(formatted, 0);
  log(LogLevel::warning, "{}", Observed{&formatted});
  EXPECT_EQ(formatted, 1);
}

TEST_F(Log, TheProgramsSinkReplacesTheDefaultAndCanBeTakenBack) {
  set_log_level(LogLevel::warning);
  std::string seen;
  const std::string during = standard_error_of([&] {
    set_log_sink([&](LogLevel level, std::string_view line) {
      EXPECT_EQ(level, LogLevel::error);
      seen += line;
    });
    log(LogLevel::error, "to the sink");
  });
  EXPECT_EQ(during, "");
  EXPECT_EQ(seen, "to the sink");
  set_log_sink({});
  EXPECT_EQ(standard_error_of([] { log(LogLevel::error, "back"); }), "weft: error: back\n");
  EXPECT_EQ(seen, "to the sink");
}

TEST_F(Log, ASinkThatThrowsOrLogsDisturbsNobody) {
  int calls = 0;
  set_log_level(LogLevel::warning);
  set_log_sink([&](LogLevel, std::string_view) {
    ++calls;
    log(LogLevel::error, "from within");
    throw std::runtime_error("the sink failed");
  });
  log(LogLevel::error, "one");
  log(LogLevel::error, "two");
  EXPECT_EQ(calls, 2);
}

TEST_F(Log, LoggingKeepsErrno) {
  set_log_level(LogLevel::warning);
  const std::string text = standard_error_of([] {
    ::close(STDERR_FILENO);  // so that the write fails
    errno = ENOENT;
    log(LogLevel::error, "lost");
    EXPECT_EQ(errno, ENOENT);
  });
  EXPECT_EQ(text, "");
}

TEST_F(Log, OneSinkCallAtATime) {
  set_log_level(LogLevel::warning);
  int lines = 0;  // plain on purpose: the sink's calls exclude each other
  set_log_sink([&](LogLevel, std::string_view) { ++lines; });
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int line = 0; line < 500; ++line) log(LogLevel::error, "line {}", line);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(lines, 2000);
}

TEST_F(Log, AProvidersLineCarriesItsName) {
  const LogCapture capture;
  core::ProviderHost host("some-fabric", {});
  host.log(LogLevel::warning, "port is down");
  host.log(LogLevel::debug, "not shown");
  EXPECT_TRUE(host.logs(LogLevel::info));
  EXPECT_FALSE(host.logs(LogLevel::debug));
  EXPECT_EQ(capture.warnings(), std::vector<std::string>{"some-fabric: port is down"});
  EXPECT_TRUE(capture.lines(LogLevel::debug).empty());
}

}  // namespace
}  // namespace weft
