// weft-native-verbs: latency, rate and bandwidth of bare verbs, written as JSON rows.
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <iostream>
#include <stdexcept>
#include <system_error>

#include "options.hpp"
#include "sides.hpp"

namespace weft::native {
namespace {

int run_side(int descriptor, const Options& options, bool initiator) {
  Exchange exchange(descriptor);
  Device device(options.device, options.gid_index);
  // Unlike work on the two sides would hang both; compare a digest before anything starts.
  std::uint64_t digest = options.runs;
  for (const Work& work : options.works) {
    for (const std::uint64_t part :
         {static_cast<std::uint64_t>(work.operation), static_cast<std::uint64_t>(work.kind), work.size,
          std::uint64_t{work.depth}, std::uint64_t{work.batch}, work.operations}) {
      digest = digest * 1'000'003 + part;
    }
  }
  if (exchange.swap(digest) != digest) throw std::runtime_error("the two sides were given different work");
  if (initiator) {
    be_initiator(device, exchange, options);
  } else {
    be_target(device, exchange, options);
  }
  return 0;
}

int guarded_side(int descriptor, const Options& options, bool initiator) {
  try {
    return run_side(descriptor, options, initiator);
  } catch (const std::exception& error) {
    std::cerr << "weft-native-verbs (" << (initiator ? "initiator" : "target") << "): " << error.what()
              << "\n";
    return 1;
  }
}

int run_both(const Options& options) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw std::system_error(errno, std::generic_category(), "cannot create a socket pair");
  }
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) throw std::system_error(errno, std::generic_category(), "cannot fork");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // an interrupted measurement leaves nothing spinning
    if (getppid() != parent) _exit(1);
    close(ends[0]);
    _exit(guarded_side(ends[1], options, false));
  }
  close(ends[1]);
  const int status = guarded_side(ends[0], options, true);
  int child_status = 0;
  waitpid(child, &child_status, 0);
  const bool child_succeeded = WIFEXITED(child_status) && WEXITSTATUS(child_status) == 0;
  return status == 0 && child_succeeded ? 0 : 1;
}

int run(const Options& options) {
  if (options.listen) return guarded_side(Exchange::accept_one(options.port), options, false);
  if (!options.connect.empty()) {
    return guarded_side(Exchange::connect_to(options.connect, options.port), options, true);
  }
  return run_both(options);
}

}  // namespace
}  // namespace weft::native

int main(int argument_count, char** arguments) {
  try {
    const auto options = weft::native::parse_options(argument_count, arguments);
    return options ? weft::native::run(*options) : 0;
  } catch (const std::exception& error) {
    std::cerr << "weft-native-verbs: " << error.what() << "\n";
    return 2;
  }
}
