// weft-perf: how fast weft is here, and what it costs over the bare fabric.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "compare.hpp"
#include "remote/client.hpp"
#include "remote/server.hpp"

namespace {

struct Command {
  const char* name;
  const char* meaning;
  std::function<int(const std::vector<std::string>&)> run;
};

const std::vector<Command>& commands() {
  static const std::vector<Command> all = {
      {"compare", "weft beside the bare fabric on this machine, with the ratio", perf::compare},
      {"server", "waits on one machine for a client on another", perf::remote::server},
      {"client", "measures between this machine and the server's", perf::remote::client},
  };
  return all;
}

void print_usage(std::FILE* stream) {
  fmt::print(stream, "Usage: weft-perf COMMAND [options]\n\nCommands:\n");
  for (const Command& command : commands()) fmt::print(stream, "  {:<9} {}\n", command.name, command.meaning);
  fmt::print(stream, "\nweft-perf COMMAND --help tells more.\n");
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int wrong_usage = 2;
  try {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    if (arguments.empty()) {
      print_usage(stderr);
      return wrong_usage;
    }
    if (arguments[0] == "--help" || arguments[0] == "-h") {
      print_usage(stdout);
      return 0;
    }
    for (const Command& command : commands()) {
      if (arguments[0] == command.name) return command.run({arguments.begin() + 1, arguments.end()});
    }
    fmt::print(stderr, "weft-perf: there is no command '{}'\n\n", arguments[0]);
    print_usage(stderr);
  } catch (const std::exception& error) {
    fmt::print(stderr, "weft-perf: {}\n", error.what());
  }
  return wrong_usage;
}
