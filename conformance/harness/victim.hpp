// The side that a wrong peer is let loose on.
#pragma once

#include <string>

#include "harness/side.hpp"
#include "harness/wrong_peer.hpp"

namespace conformance {

// A listener, a connection that has nothing to do with it all, and memory that nobody was given.
struct Victim {
  explicit Victim(const Test& test);

  [[nodiscard]] WrongPeer peer() const { return {loop.listener.address(), introduction}; }
  // Throws away what has arrived for the program.
  void clear();
  void check_unharmed(const std::string& after);

  Loop loop;
  GuardedBuffer forbidden;
  weft::MemoryRegion forbidden_region;
  weft::EndpointOptions options;  // of its side of a connection
  Introduction introduction;      // for a peer
};

}  // namespace conformance
