// The whole program over one kind of link: two sides, each a process of its own, and what they are told.
#pragma once

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

template <class Link>
int run_side(int descriptor, const Options& options, bool initiator) {
  Exchange exchange(descriptor);
  typename Link::Device device(options);
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
    be_initiator<Link>(device, exchange, options);
  } else {
    be_target<Link>(device, exchange, options);
  }
  return 0;
}

template <class Link>
int guarded_side(const Program& program, int descriptor, const Options& options, bool initiator) {
  try {
    return run_side<Link>(descriptor, options, initiator);
  } catch (const std::exception& error) {
    std::cerr << program.name << " (" << (initiator ? "initiator" : "target") << "): " << error.what()
              << "\n";
    return 1;
  }
}

template <class Link>
int run_both(const Program& program, const Options& options) {
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
    _exit(guarded_side<Link>(program, ends[1], options, false));
  }
  close(ends[1]);
  const int status = guarded_side<Link>(program, ends[0], options, true);
  int child_status = 0;
  waitpid(child, &child_status, 0);
  const bool child_succeeded = WIFEXITED(child_status) && WEXITSTATUS(child_status) == 0;
  return status == 0 && child_succeeded ? 0 : 1;
}

template <class Link>
int run(const Program& program, const Options& options) {
  if (options.listen) return guarded_side<Link>(program, Exchange::accept_one(options.port), options, false);
  if (!options.connect.empty()) {
    return guarded_side<Link>(program, Exchange::connect_to(options.connect, options.port), options, true);
  }
  return run_both<Link>(program, options);
}

template <class Link>
int main_of(const Program& program, int argument_count, char** arguments) {
  try {
    const auto options = parse_options(program, argument_count, arguments);
    return options ? run<Link>(program, *options) : 0;
  } catch (const std::exception& error) {
    std::cerr << program.name << ": " << error.what() << "\n";
    return 2;
  }
}

}  // namespace weft::native
