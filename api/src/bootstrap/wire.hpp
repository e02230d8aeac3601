// What the cores of two contexts say to each other on their control connections. All little-endian. Every
// connection starts with the dialer's preamble, then both sides send frames: 32-bit payload length, 16-bit
// type, 16 bits of zero, payload.
//
// To connect an endpoint:                        To open a link (both ways, then: end, ring, ping, pong):
//   dialer   -> hello                              dialer   -> link
//   listener -> welcome, or refuse                 listener -> link_ok, or closes
//   dialer   -> linked
//   listener -> accept, reject or refuse
//   dialer   -> ready
//   listener -> go
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/attributes.hpp"
#include "weft/provider/context.hpp"
#include "weft/status.hpp"

namespace weft::core::wire {

inline constexpr std::uint32_t magic = 0x54464557;  // "WEFT"
inline constexpr std::uint16_t lowest_version = 1;
inline constexpr std::uint16_t highest_version = 1;
inline constexpr std::size_t preamble_size = 12;
inline constexpr std::size_t header_size = 8;
inline constexpr std::size_t max_frame = 16'384;
inline constexpr std::size_t max_payload = max_frame - header_size;
inline constexpr std::size_t max_blob = 4'096;
inline constexpr std::size_t max_private_data = 4'096;
inline constexpr std::size_t max_name = 64;
inline constexpr std::size_t max_version_text = 128;
inline constexpr std::size_t max_text = 512;
inline constexpr std::size_t max_providers = 32;

static_assert(2 * max_blob + max_private_data + max_providers * (max_name + 2) < max_payload);

using Id = std::array<std::byte, 16>;  // of a context; also a link's token
using Bytes = std::vector<std::byte>;

enum class Kind : std::uint8_t { endpoint = 1, link = 2 };

enum class FrameType : std::uint16_t {
  hello = 1,
  welcome = 2,
  refuse = 3,
  linked = 4,
  accept = 5,
  reject = 6,
  ready = 7,
  go = 8,
  link = 16,
  link_ok = 17,
  end = 18,
  ping = 19,
  pong = 20,
  ring = 21,
};

struct Preamble {
  std::uint32_t magic = wire::magic;
  std::uint16_t lowest = lowest_version;
  std::uint16_t highest = highest_version;
  std::uint8_t byte_order = 0;  // 1 little-endian, 2 big-endian
  std::uint8_t kind = 0;        // Kind, not yet checked
};
[[nodiscard]] std::uint8_t host_byte_order() noexcept;

struct Header {
  std::uint32_t length = 0;
  FrameType type = FrameType::hello;
};

struct Hello {
  Id context{};
  std::string provider;
  std::string provider_version;
  provider::Context::ProtocolRange protocol;
  std::vector<std::string> available;  // providers this side has, for the text of a refusal
  std::uint32_t endpoint = 0;
  Limits limits;
  bool keeps_connection = false;
  Bytes blob;
  Bytes private_data;
};

struct Welcome {
  std::uint16_t version = 0;   // of this conversation
  std::uint16_t protocol = 0;  // of the providers'
  Id context{};
  Id token{};  // opens a link
};

struct Refuse {
  Status status = Status::refused;
  std::string text;
};

struct Linked {
  Id token{};  // of the link that the endpoint will use
};

struct Accept {
  std::uint32_t endpoint = 0;
  Limits limits;
  Bytes blob;
  Bytes private_data;
};

struct Reject {
  Bytes private_data;
};

struct Ready {};
struct Go {};

struct LinkHello {
  Id context{};
  Id token{};
};
struct LinkOk {};

struct End {
  std::uint32_t endpoint = 0;  // the receiver's
  Status cause = Status::aborted;
  bool after_messages = false;
  std::uint64_t messages = 0;
  std::uint64_t detail = 0;
  std::int32_t native_code = 0;
  std::string text;
};
struct Ring {
  std::uint32_t endpoint = 0;  // the receiver's: its provider is to look
};
struct Ping {};
struct Pong {};

[[nodiscard]] Bytes encode(const Preamble& preamble);
[[nodiscard]] Preamble decode_preamble(std::span<const std::byte, preamble_size> bytes) noexcept;
// Nothing for a frame that is too long or of no known type.
[[nodiscard]] std::optional<Header> decode_header(std::span<const std::byte, header_size> bytes) noexcept;

// Whole frames, header included.
[[nodiscard]] Bytes encode(const Hello& frame);
[[nodiscard]] Bytes encode(const Welcome& frame);
[[nodiscard]] Bytes encode(const Refuse& frame);
[[nodiscard]] Bytes encode(const Linked& frame);
[[nodiscard]] Bytes encode(const Accept& frame);
[[nodiscard]] Bytes encode(const Reject& frame);
[[nodiscard]] Bytes encode(const Ready& frame);
[[nodiscard]] Bytes encode(const Go& frame);
[[nodiscard]] Bytes encode(const LinkHello& frame);
[[nodiscard]] Bytes encode(const LinkOk& frame);
[[nodiscard]] Bytes encode(const End& frame);
[[nodiscard]] Bytes encode(const Ring& frame);
[[nodiscard]] Bytes encode(const Ping& frame);
[[nodiscard]] Bytes encode(const Pong& frame);

// decode<Hello>(payload); nothing when a field is out of range, bytes are missing or left over.
template <typename FrameBody>
[[nodiscard]] std::optional<FrameBody> decode(std::span<const std::byte> payload);

// The smaller of each.
[[nodiscard]] Limits negotiated(const Limits& mine, const Limits& theirs) noexcept;

}  // namespace weft::core::wire
