#include "harness/fork_server.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>
#include <vector>

namespace conformance {
namespace {

// The server's address, in the abstract namespace: nothing to clean up. The same in every process.
std::string server_name;
pid_t server_id = -1;

// A socket belongs to the network in which it was made, wherever its process goes.
std::vector<Channel> reserved;

Channel unconnected() { return Channel(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)); }

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

sockaddr_un server_address(socklen_t& size) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, server_name.data(), server_name.size());
  size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + server_name.size());
  return address;
}

int listen_at_server_address() {
  const int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  socklen_t size = 0;
  const sockaddr_un address = server_address(size);
  if (listener < 0 || bind(listener, reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      listen(listener, 64) != 0) {
    fail("fork server: listen");
  }
  return listener;
}

// Nobody outlives the runner.
void die_with(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
}

class Server {
 public:
  explicit Server(int listener) : listener_(listener) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, &mask_before_);
    children_ended_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (children_ended_ < 0) fail("fork server: signalfd");
  }

  [[noreturn]] void run() {
    while (true) {
      std::array<pollfd, 2> ready{pollfd{listener_, POLLIN, 0}, pollfd{children_ended_, POLLIN, 0}};
      if (poll(ready.data(), ready.size(), -1) < 0 && errno != EINTR) fail("fork server: poll");
      if (ready[0].revents != 0) serve();
      if (ready[1].revents != 0) reap();
    }
  }

 private:
  void serve() {
    Channel control(accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC));
    if (control.descriptor() < 0) return;
    std::string content;
    try {
      const auto message = control.next(30s);
      if (!message) return control.put(Channel::Kind::text, "the request did not come");
      content = message->content;
      const pid_t server = getpid();
      const pid_t child = fork_patiently();
      if (child < 0) return control.put(Channel::Kind::text, std::string("fork: ") + std::strerror(errno));
      if (child == 0) become_child(std::move(control), content, server);
      children_.emplace(child, std::move(control));
    } catch (const Abandoned&) {
    }
  }

  // A machine that has no room for one more process now may have some in a moment; and when it has none, that
  // is one test's misfortune, not the end of all.
  static pid_t fork_patiently() {
    const Deadline deadline(5s);
    while (true) {
      const pid_t child = fork();
      if (child >= 0 || (errno != EAGAIN && errno != ENOMEM) || deadline.passed()) return child;
      pause(50ms);
    }
  }

  [[noreturn]] void become_child(Channel control, const std::string& content, pid_t server) {
    die_with(server);
    ::close(listener_);
    ::close(children_ended_);
    children_.clear();
    sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
    const auto request = nlohmann::json::parse(content);
    setpgid(0, request.at("group").get<pid_t>());
    int status = EXIT_SUCCESS;
    try {
      control.put(Channel::Kind::started, std::to_string(getpid()));
      const auto body = reinterpret_cast<ProcessBody>(request.at("body").get<std::uintptr_t>());
      body(control, request.at("arguments").get_ref<const std::string&>());
    } catch (const Abandoned&) {
      status = EXIT_FAILURE;
    }
    std::cout.flush();
    // Not _exit: static destructors are part of what is tested, and leak checkers report there.
    std::exit(status);
  }

  void reap() {
    signalfd_siginfo info{};
    while (read(children_ended_, &info, sizeof(info)) > 0) {
    }
    int status = 0;
    while (true) {
      const pid_t child = waitpid(-1, &status, WNOHANG);
      if (child <= 0) return;
      const auto found = children_.find(child);
      if (found == children_.end()) continue;
      try {
        found->second.put(Channel::Kind::exited, std::to_string(status));
      } catch (const Abandoned&) {
      }
      children_.erase(found);
    }
  }

  int listener_;
  int children_ended_ = -1;
  sigset_t mask_before_{};
  std::map<pid_t, Channel> children_;
};

}  // namespace

void start_fork_server() {
  server_name = "weft-conformance-" + std::to_string(getpid());
  const int listener = listen_at_server_address();
  const pid_t runner = getpid();
  server_id = fork();
  if (server_id < 0) fail("fork server: fork");
  if (server_id == 0) {
    die_with(runner);
    try {
      Server(listener).run();
    } catch (const std::exception& error) {
      std::cerr << "weft-conformance: " << error.what() << '\n';
      _exit(EXIT_FAILURE);
    }
  }
  ::close(listener);
}

namespace {

// For the runner, whose child the server is.
std::string server_in_words() {
  int status = 0;
  if (waitpid(server_id, &status, WNOHANG) != server_id) return {};
  const std::string how = exit_in_words(std::to_string(status));
  return " and " + (how.empty() ? "ended" : how);
}

}  // namespace

void reserve_processes(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) reserved.push_back(unconnected());
}

Process start_process(ProcessBody body, const std::string& arguments, pid_t group) {
  Process process;
  if (reserved.empty()) {
    process.control = unconnected();
  } else {
    process.control = std::move(reserved.back());
    reserved.pop_back();
  }
  socklen_t size = 0;
  const sockaddr_un address = server_address(size);
  if (connect(process.control.descriptor(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
    fail("fork server: connect");
  }
  const nlohmann::json request{
      {"body", reinterpret_cast<std::uintptr_t>(body)}, {"arguments", arguments}, {"group", group}};
  try {
    process.control.put(Channel::Kind::text, request.dump());
    const auto started = process.control.next(60s);
    if (!started) throw std::runtime_error("fork server: no new process within a minute");
    if (started->kind == Channel::Kind::exited)
      throw std::runtime_error("fork server: the new process " + exit_in_words(started->content));
    if (started->kind != Channel::Kind::started)
      throw std::runtime_error("fork server: no new process: " + started->content);
    process.id = std::stoi(started->content);
  } catch (const Abandoned&) {
    throw std::runtime_error("fork server: it hung up" + server_in_words());
  }
  return process;
}

std::string exit_in_words(const std::string& exited) {
  const int status = std::stoi(exited);
  if (WIFSIGNALED(status)) {
    const int number = WTERMSIG(status);
    return "ended by signal " + std::to_string(number) + " (" + strsignal(number) + ")";
  }
  if (WEXITSTATUS(status) != 0) return "exited with status " + std::to_string(WEXITSTATUS(status));
  return {};
}

}  // namespace conformance
