#include "peer_process.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <stdexcept>

namespace fakeverbs_test {

Wire::~Wire() { ::close(descriptor_); }

void Wire::write_all(const void* data, std::size_t bytes) const {
  if (::send(descriptor_, data, bytes, MSG_NOSIGNAL) != static_cast<ssize_t>(bytes)) {
    throw std::runtime_error("the other process is gone");
  }
}

void Wire::read_all(void* data, std::size_t bytes) const {
  if (::recv(descriptor_, data, bytes, MSG_WAITALL) != static_cast<ssize_t>(bytes)) {
    throw std::runtime_error("the other process is gone");
  }
}

PeerProcess::PeerProcess(const std::function<void(Wire&)>& body) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw std::runtime_error("socketpair failed");
  }
  std::fflush(nullptr);
  pid_ = ::fork();
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::close(ends[0]);
    int status = 0;
    try {
      Wire wire(ends[1]);
      body(wire);
    } catch (const std::exception& error) {
      ADD_FAILURE() << "in the peer process: " << error.what();
    }
    status = testing::Test::HasFailure() ? 1 : 0;
    std::fflush(nullptr);
    ::_exit(status);
  }
  ::close(ends[1]);
  wire_ = new Wire(ends[0]);
}

PeerProcess::~PeerProcess() {
  delete wire_;
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  static_cast<void>(wait());
}

void PeerProcess::signal(int number) const { EXPECT_EQ(::kill(pid_, number), 0); }

int PeerProcess::wait() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace fakeverbs_test
