// weft-perf as programs, run by its tests over tcp on this machine.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

namespace perf::remote {

struct Output {
  std::string text;
  int status = -1;
};

inline Output run(const std::string& arguments) {
  const std::string command = "WEFT_PROVIDER=tcp timeout 100 " WEFT_PERF_PROGRAM " " + arguments + " 2>&1";
  Output output;
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  std::array<char, 4096> piece{};
  for (std::size_t length = 0; (length = std::fread(piece.data(), 1, piece.size(), pipe)) > 0;) {
    output.text.append(piece.data(), length);
  }
  const int status = ::pclose(pipe);
  output.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return output;
}

class Server {
 public:
  explicit Server(const std::vector<std::string>& further = {}, const std::string& provider = "tcp") {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    std::vector<std::string> words = {WEFT_PERF_PROGRAM, "server", "127.0.0.1:0", "--provider", provider};
    words.insert(words.end(), further.begin(), further.end());
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    process_ = ::fork();
    if (process_ == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      ::execv(arguments[0], arguments.data());
      ::_exit(127);
    }
    ::close(ends[1]);
    output_ = ::fdopen(ends[0], "r");
    const std::string first = line();
    const std::string start = "listening at ";
    EXPECT_EQ(first.rfind(start, 0), 0U) << first;
    address_ = first.substr(start.size(), first.find(' ', start.size()) - start.size());
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server() {
    stop(SIGTERM);
    std::fclose(output_);
  }

  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] int port() const { return std::stoi(address_.substr(address_.rfind(':') + 1)); }
  std::string line() {
    std::array<char, 1024> text{};
    return std::fgets(text.data(), text.size(), output_) == nullptr ? "" : text.data();
  }
  // The next line that holds the text; empty when the output ends before.
  std::string line_with(const std::string& wanted) {
    for (std::string next; !(next = line()).empty();) {
      if (next.find(wanted) != std::string::npos) return next;
    }
    return {};
  }
  void stop(int signal) {
    if (process_ <= 0) return;
    ::kill(process_, signal);
    (void)exit_status();
  }
  int exit_status() {
    int status = 0;
    ::waitpid(process_, &status, 0);
    process_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t process_ = -1;
  std::FILE* output_ = nullptr;
  std::string address_;
};

}  // namespace perf::remote
