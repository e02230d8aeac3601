// A second process for a test, talking over a socket pair.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>

namespace fakeverbs_test {

// One end of the socket pair; for plain values only.
class Wire {
 public:
  explicit Wire(int descriptor) : descriptor_(descriptor) {}
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;
  ~Wire();
  template <class T>
  void put(const T& value) const {
    write_all(&value, sizeof value);
  }
  template <class T>
  [[nodiscard]] T get() const {
    T value{};
    read_all(&value, sizeof value);
    return value;
  }

 private:
  void write_all(const void* data, std::size_t bytes) const;
  void read_all(void* data, std::size_t bytes) const;  // ends the process when the other end is gone
  int descriptor_;
};

class PeerProcess {
 public:
  // Runs `body` in a child. The caller must have no device open: what is open does not survive a fork.
  explicit PeerProcess(const std::function<void(Wire&)>& body);
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;
  ~PeerProcess();

  [[nodiscard]] Wire& wire() { return *wire_; }
  void signal(int number) const;
  // Its exit status: 0 when no check in it failed; 128 + N when a signal ended it.
  [[nodiscard]] int wait();

 private:
  Wire* wire_ = nullptr;
  pid_t pid_ = -1;
};

}  // namespace fakeverbs_test
