// Plain TCP sockets, for peers that do not speak weft's protocol, or speak it wrongly on purpose.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "harness/clock.hpp"

namespace conformance {

class RawSocket {
 public:
  RawSocket() = default;
  explicit RawSocket(int descriptor) : descriptor_(descriptor) {}
  RawSocket(RawSocket&& other) noexcept;
  RawSocket& operator=(RawSocket&& other) noexcept;
  ~RawSocket() { close(); }

  // `address` as Listener::address() gives it; IPv4 only.
  static RawSocket connected_to(const std::string& address);
  // At a free port or the given one.
  static RawSocket listening(std::uint16_t port = 0, const std::string& host = "127.0.0.1");
  [[nodiscard]] RawSocket accepted(Duration patience = 10s) const;
  [[nodiscard]] std::uint16_t port() const;

  // False when the other side has closed.
  bool send(std::string_view bytes) const;
  // False also when the other side takes nothing for that long; what was taken until then is gone.
  [[nodiscard]] bool send_within(std::string_view bytes, Duration patience) const;
  // What has come; empty when nothing came within the time, or the other side has closed.
  [[nodiscard]] std::string receive(Duration patience, std::size_t most = 65536) const;
  // Whether the other side closes within the time; what it sends is thrown away.
  [[nodiscard]] bool closed_within(Duration patience) const;
  // Whether the other side's kernel has everything that was sent.
  [[nodiscard]] bool is_acknowledged() const;
  void close();
  [[nodiscard]] int descriptor() const { return descriptor_; }
  [[nodiscard]] bool is_open() const { return descriptor_ >= 0; }

 private:
  int descriptor_ = -1;
};

}  // namespace conformance
