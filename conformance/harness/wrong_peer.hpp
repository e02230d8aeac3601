// A peer over plain sockets that knows what weft's cores say to each other and says it as a test wants it:
// right up to some point, wrong from there. It shares no code with what it talks to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/raw_socket.hpp"

namespace conformance {

// Puts bytes together, integers little-endian.
class Saying {
 public:
  template <class T>
  Saying& put(T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i)
      bytes_ += static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i));
    return *this;
  }
  Saying& raw(const std::string& bytes) {
    bytes_ += bytes;
    return *this;
  }
  // With its length in 16 bits in front.
  Saying& text(const std::string& text) { return put(static_cast<std::uint16_t>(text.size())).raw(text); }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Types of frames on control connections.
enum class Said : std::uint16_t {
  hello = 1,
  welcome,
  refuse,
  linked,
  accept,
  reject,
  ready,
  go,
  link = 16,
  link_ok,
  end,
  ping,
  pong,
  ring
};

[[nodiscard]] std::string frame(Said type, const std::string& payload = {});

struct Preamble {
  std::uint32_t magic = 0x54464557;
  std::uint16_t lowest = 1;
  std::uint16_t highest = 1;
  std::uint8_t byte_order = 1;
  std::uint8_t kind = 1;  // 1 an endpoint, 2 a link
  [[nodiscard]] std::string bytes() const;
};

// What a dialer says of itself. Taken from the wire, so that every provider finds in it what it wants.
struct Introduction {
  std::string context;
  std::string provider;
  std::string version;
  std::uint16_t lowest = 0;
  std::uint16_t highest = 0;
  std::vector<std::string> available;
  std::uint32_t endpoint = 0;
  std::uint64_t max_message = 0;
  std::uint64_t max_transfer = 0;
  std::uint32_t max_inline = 0;
  std::uint32_t max_segments = 0;
  std::uint32_t send_depth = 0;
  std::uint32_t receive_depth = 0;
  std::uint32_t max_outstanding_reads = 0;
  std::uint64_t unexpected_bytes = 0;
  std::uint8_t keeps_connection = 0;
  std::string blob;
  std::string private_data;

  [[nodiscard]] static Introduction parsed(const std::string& payload);
  [[nodiscard]] std::string payload() const;
};

struct Heard {
  Said type{};
  std::string payload;
};

// The two connections of a dialer.
class WrongPeer {
 public:
  WrongPeer(std::string address, Introduction introduction);

  // What weft's own dialer would do, step by step.
  void greet();  // preamble and hello
  [[nodiscard]] bool is_welcome();
  [[nodiscard]] bool opens_link();
  void names_link();  // linked: the program of the other side gets an arrival
  // All of the above; false when the other side does not go along.
  [[nodiscard]] bool arrives() { return greet(), is_welcome() && opens_link() && (names_link(), true); }
  [[nodiscard]] bool is_accepted();
  [[nodiscard]] bool goes();  // ready, and hears go

  // The next frame; nothing when none comes in time or the other side has closed.
  [[nodiscard]] static std::optional<Heard> hear(const RawSocket& from, Duration patience = 5s);
  // Until the other side closes; whether a frame of that type came before.
  [[nodiscard]] static bool hears(const RawSocket& from, Said type, Duration patience = 5s);

  [[nodiscard]] const std::string& address() const { return address_; }

  Introduction introduction;
  RawSocket main;  // the endpoint's connection
  RawSocket link;
  std::string token;                   // of the link
  std::uint32_t victims_endpoint = 0;  // once accepted

 private:
  std::string address_;
};

}  // namespace conformance
