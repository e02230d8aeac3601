#include "server.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <optional>

#include "options.hpp"
#include "server_session.hpp"

namespace perf::remote {
namespace {

void say(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

// Nothing when it was no client.
std::optional<bool> serve(const ServerOptions& options, weft::Context& context,
                          weft::ConnectionRequest request) {
  const std::string who = printable(request.peer_address());
  Hello hello;
  try {
    hello = parse_hello(request.private_data());
  } catch (const Unintelligible& problem) {
    say(fmt::format("{}: refused: {}", who, problem.what()));
    try {
      refuse(request, problem.what());
    } catch (const weft::Error&) {
      // It did not wait for the answer.
    }
    return std::nullopt;
  }
  say(fmt::format("{}: served", who));
  try {
    ServerSession session(options, context, hello, std::move(request));
    session.run();
    say(fmt::format("{}: done", who));
    return true;
  } catch (const std::exception& problem) {
    // What its texts quote is made printable where it is read.
    say(fmt::format("{}: broken off: {}", who, problem.what()));
    return false;
  }
}

}  // namespace

int server(const std::vector<std::string>& arguments) {
  const std::optional<ServerOptions> options = parse_server_options(arguments);
  if (!options) return 0;
  weft::ContextOptions context_options;
  context_options.provider = options->provider;
  context_options.device = options->device;
  weft::Context context = weft::Context::open(context_options);
  Arrivals arrivals(context, options->address);
  say(fmt::format("listening at {} with {}", arrivals.address(), context.attributes().provider));
  for (;;) {
    auto request = arrivals.next(std::chrono::milliseconds(-1));
    if (!request) continue;
    const std::optional<bool> good = serve(*options, context, std::move(*request));
    if (good && options->once) return *good ? 0 : 1;
  }
}

}  // namespace perf::remote
