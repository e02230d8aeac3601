// Two contexts of one process, connected: one thread is both sides, so that each call can be looked at alone.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "weft/weft.hpp"

namespace instructions {

struct PairPlan {
  std::string provider;
  weft::ThreadMode threads = weft::ThreadMode::single;
};

class Pair {
 public:
  static constexpr std::uint32_t depth = 256;
  static constexpr std::size_t buffer_size = std::size_t{64} * 1024;

  explicit Pair(const PairPlan& plan);

  [[nodiscard]] weft::Endpoint& client() { return client_; }
  [[nodiscard]] weft::Endpoint& server() { return server_; }
  [[nodiscard]] weft::CompletionQueue& client_queue() { return client_queue_; }
  [[nodiscard]] weft::CompletionQueue& server_queue() { return server_queue_; }
  [[nodiscard]] weft::Segment source(std::size_t length) const { return client_region_.slice(0, length); }
  [[nodiscard]] weft::Segment destination(std::size_t length) const {
    return server_region_.slice(0, length);
  }
  [[nodiscard]] weft::RemoteSegment target() const { return remote_.at(0); }

  /// Takes every completion of both sides and tops the server's receives up, until nothing moves for a while.
  void settle();
  /// Waits, without a call on the server's queue, until so many messages of the client can be there.
  static void let_arrive();

 private:
  bool drain(weft::CompletionQueue& queue, bool receives);

  weft::Context client_context_;
  weft::Context server_context_;
  weft::CompletionQueue client_queue_;
  weft::CompletionQueue server_queue_;
  std::vector<std::byte> client_bytes_;
  std::vector<std::byte> server_bytes_;
  weft::MemoryRegion client_region_;
  weft::MemoryRegion server_region_;
  weft::Listener listener_;
  weft::Endpoint client_;
  weft::Endpoint server_;
  weft::RemoteMemory remote_;
  std::uint32_t receives_ = 0;
};

}  // namespace instructions
