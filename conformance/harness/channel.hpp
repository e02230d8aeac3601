// The control channel between two processes or threads of a test, beside the fabric: values, bytes and
// barriers. Whole messages over a Unix socket.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "harness/clock.hpp"

namespace conformance {

class Channel {
 public:
  enum class Kind : std::uint8_t {
    text,      // bytes for the test
    barrier,   // the other side has come to a barrier
    started,   // the process runs; its id
    finished,  // its function returned; its findings
    exited     // the fork server: the process is gone; how
  };
  struct Message {
    Kind kind = Kind::text;
    std::string content;
  };

  Channel() = default;
  explicit Channel(int descriptor) : descriptor_(descriptor) {}
  Channel(Channel&& other) noexcept { *this = std::move(other); }
  Channel& operator=(Channel&& other) noexcept;
  ~Channel() { close(); }

  // Two ends of one channel, for threads.
  static std::pair<Channel, Channel> make_pair();

  // ---- for tests. A missing answer fails the test after `patience`.
  void send(std::string_view bytes) { put(Kind::text, bytes); }
  void send(std::span<const std::byte> bytes) {
    send(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }
  [[nodiscard]] std::string receive(Duration patience = 20s) { return expect(Kind::text, patience); }

  template <class T>
  requires std::is_trivially_copyable_v<T>
  void send_value(const T& value) {
    send(std::string_view(reinterpret_cast<const char*>(&value), sizeof(value)));
  }
  template <class T>
  requires std::is_trivially_copyable_v<T>
  [[nodiscard]] T receive_value(Duration patience = 20s) {
    const std::string bytes = receive(patience);
    T value{};
    check_size(bytes.size(), sizeof(value));
    std::memcpy(&value, bytes.data(), sizeof(value));
    return value;
  }
  // Both sides are here.
  void barrier(Duration patience = 20s);

  // ---- for the harness
  void put(Kind kind, std::string_view content);
  // The next message; nothing when the time has passed; throws Abandoned when the other end is closed.
  [[nodiscard]] std::optional<Message> next(Duration patience);
  // `finished` and `exited` that came while something else was awaited.
  [[nodiscard]] std::optional<std::string> ending(Kind kind, Duration patience);
  // No more will be said by this side.
  void end_of_talk();
  void close();
  [[nodiscard]] int descriptor() const { return descriptor_; }
  [[nodiscard]] int release() { return std::exchange(descriptor_, -1); }

 private:
  [[nodiscard]] std::string expect(Kind kind, Duration patience);
  static void check_size(std::size_t found, std::size_t expected);
  void keep(Message message);

  int descriptor_ = -1;
  std::optional<std::string> finished_;
  std::optional<std::string> exited_;
};

}  // namespace conformance
