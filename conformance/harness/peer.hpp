// The other side of a test: a process, which can be killed or stopped, or a thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <thread>

#include "harness/channel.hpp"

namespace conformance {

class Test;

enum class PeerKind : std::uint8_t { process, thread };
using PeerBody = void (*)(Test& test, Channel& control);

class Peer {
 public:
  Peer(const Test& test, PeerBody body, PeerKind kind);
  Peer(Peer&&) noexcept = default;
  Peer& operator=(Peer&&) = delete;
  // Ends the peer when finish() has not been called, and takes over what it found.
  ~Peer();

  [[nodiscard]] Channel& control() { return control_; }
  [[nodiscard]] pid_t process() const { return process_; }

  // Waits until its function has returned; its findings become the test's.
  void finish(Duration patience = 20s);

  // Processes only.
  void kill();
  void stop();
  void resume();

 private:
  void collect(Duration patience);

  Channel control_;
  pid_t process_ = -1;
  std::thread thread_;
  bool killed_ = false;
  bool open_ = true;
};

}  // namespace conformance
