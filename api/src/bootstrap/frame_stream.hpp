// Frames over a non-blocking socket. It reads exactly one frame at a time and never past its end, because
// after the last frame of a handshake the connection may belong to a provider.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "bootstrap/descriptor.hpp"
#include "bootstrap/wire.hpp"

namespace weft::core {

class FrameStream {
 public:
  enum class Result : std::uint8_t {
    done,       // what was asked for is there
    nothing,    // not yet
    closed,     // the peer closed the connection
    broken,     // the connection failed, error() tells how
    malformed,  // the peer does not speak this protocol
  };

  FrameStream() noexcept = default;
  explicit FrameStream(Descriptor socket) noexcept : socket_(std::move(socket)) {}

  [[nodiscard]] int socket() const noexcept { return socket_.get(); }
  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(socket_); }

  [[nodiscard]] Result read_preamble(wire::Preamble& preamble);
  [[nodiscard]] Result read_frame(wire::FrameType& type, wire::Bytes& payload);

  // Sends as much as the socket takes and keeps the rest. After a failure everything is dropped; reading
  // goes on, since the peer may have said why.
  void send(const wire::Bytes& bytes);
  void flush() noexcept;
  [[nodiscard]] bool has_unsent() const noexcept { return !output_.empty() && !send_failed_; }
  [[nodiscard]] int error() const noexcept { return error_; }
  // For messages: why reading ended.
  [[nodiscard]] std::string describe(Result result) const;

  // Takes the socket out; nothing may be unsent.
  [[nodiscard]] Descriptor take_socket() noexcept { return std::move(socket_); }
  void close() noexcept;

 private:
  [[nodiscard]] Result fill(std::size_t count);

  Descriptor socket_;
  wire::Bytes input_;
  std::size_t have_ = 0;     // bytes of input_ that are read
  bool in_payload_ = false;  // the header is read
  wire::Header header_;
  wire::Bytes output_;
  bool send_failed_ = false;
  int error_ = 0;
};

}  // namespace weft::core
