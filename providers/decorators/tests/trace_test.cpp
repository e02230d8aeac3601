#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iterator>

#include "link.hpp"

namespace weft::decorator_tests {
namespace {

std::string content_of(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(Trace, WritesALineForEveryCallAndCompletion) {
  const std::string folder = testing::TempDir();
  const Variable file("WEFT_TRACE_FILE", folder + "weft-trace-test-%p");
  const std::string path = folder + "weft-trace-test-" + std::to_string(::getpid());
  {
    Link link("trace+tcp");
    EXPECT_EQ(link.context.attributes().provider, "trace+tcp");
    link.ping();
    EXPECT_EQ(link.near.send(link.region.slice(Link::size, 1), 0x77), Status::invalid_argument);
  }
  const std::string text = content_of(path);
  std::remove(path.c_str());
  for (const char* part : {"context opened over tcp", "register 2097152 bytes", "capacity=256",
                           "post_receives 1/1 context=0x1 bytes=64 segments=1 -> ok",
                           "post 1/1 send context=0x2 bytes=64 segments=1 flags=none -> ok",
                           "completion receive ok", "completion send ok", "context=0x77",
                           "-> invalid_argument", "goes up", "close", "deregister -> ok"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is missing in:\n" << text;
  }
}

TEST(Trace, GoesToTheLogAtLevelTrace) {
  LogLines lines(LogLevel::trace);
  Link link("trace+tcp");
  link.ping();
  EXPECT_EQ(lines.with("trace: endpoint").empty(), false);
  EXPECT_EQ(lines.with("completion send ok").size(), 1U);
}

TEST(Trace, IsSilentWhenNobodyListens) {
  LogLines lines(LogLevel::info);
  Link link("trace+tcp");
  link.ping();
  EXPECT_TRUE(lines.with("trace: ").empty());
}

TEST(Trace, RefusesAFileThatCannotBeWritten) {
  const Variable file("WEFT_TRACE_FILE", "/no/such/folder/trace");
  ContextOptions options;
  options.provider = "trace+tcp";
  try {
    (void)Context::open(options);
    FAIL() << "opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Status::invalid_argument);
    EXPECT_NE(std::string(error.what()).find("/no/such/folder/trace"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace weft::decorator_tests
