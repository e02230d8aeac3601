// The stream socket over which both sides swap addresses and keep in step. It carries no measured data.
#pragma once

#include <cstdint>
#include <string>

namespace weft::native {

class Exchange {
 public:
  explicit Exchange(int descriptor) : descriptor_(descriptor) {}
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  ~Exchange();

  // Waits for one peer on `port`, on every address of the machine.
  static int accept_one(std::uint16_t port);
  // Connects to `host`; tries for ten seconds, so that the sides may start in either order.
  static int connect_to(const std::string& host, std::uint16_t port);

  // Sends `mine` and returns what the peer sent at the same point. Both sides are one program on like
  // machines.
  template <typename Value>
  Value swap(const Value& mine) {
    Value theirs{};
    send_all(&mine, sizeof mine);
    receive_all(&theirs, sizeof theirs);
    return theirs;
  }
  // Returns when the peer has called it too.
  void meet() { swap(std::uint8_t{1}); }
  // Throws when the peer is gone. Loops that spin on completions call it now and then.
  void check_peer() const;

 private:
  void send_all(const void* data, std::size_t size);
  void receive_all(void* data, std::size_t size);

  int descriptor_;
};

}  // namespace weft::native
