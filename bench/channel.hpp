// How the program that measures talks with the processes that do the work: small framed messages over a
// stream descriptor. A socketpair today; a TCP connection serves as well once the halves stand on two
// machines.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "role.hpp"

namespace perf {

enum class Message : std::uint32_t {
  address,  ///< Worker: where the server can be reached.
  connect,  ///< To the client: the server's address. To the server: accept now.
  ready,    ///< Worker: connected; the client adds the fabric's name.
  run,      ///< Do so many operations.
  leave,    ///< No more work.
  done,     ///< Worker: finished; the client adds a Slice.
  failed,   ///< Worker: gave up; the text says why.
};

class Channel {
 public:
  /// Owns the descriptor.
  explicit Channel(int descriptor) : descriptor_(descriptor) {}
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  ~Channel();

  void send(Message kind, const std::string& payload = {});

  struct Received {
    Message kind;
    std::string payload;
  };

  /// Sleeps until a message is there. Throws std::runtime_error when the other end is gone or the deadline
  /// passes.
  [[nodiscard]] Received receive(std::chrono::steady_clock::time_point deadline);
  [[nodiscard]] Received receive() { return receive(std::chrono::steady_clock::time_point::max()); }

 private:
  void receive_bytes(void* data, std::size_t length, std::chrono::steady_clock::time_point deadline);

  int descriptor_;
};

/// Numbers and slices as payloads; both ends are the same program, so the native layout will do.
[[nodiscard]] std::string pack(std::uint64_t number);
[[nodiscard]] std::uint64_t unpack_number(const std::string& payload);
[[nodiscard]] std::string pack(const Slice& slice);
[[nodiscard]] Slice unpack_slice(const std::string& payload);

}  // namespace perf
