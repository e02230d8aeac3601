// The engine's frames. A frame is a 16-byte header, an extension of a size fixed by its type, and `length`
// bytes of payload. All integers are little-endian. One direction of one endpoint is one ordered stream of
// frames; a transport delivers it and knows nothing of its content.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace weft::engine::wire {

static_assert(std::endian::native == std::endian::little,
              "the coder copies integers as they are; the handshake refuses a peer of another byte order");

// Of the frames; what a provider states as its protocol, unless it adds to them.
inline constexpr std::uint16_t version = 2;

enum class Type : std::uint8_t {
  send = 1,         // a message's first piece
  write = 2,        // a one-sided write's first piece
  more = 3,         // the next piece of the message or write that is open
  read = 4,         // asks for bytes
  read_data = 5,    // a piece of the answer to the oldest read that is open
  atomic = 6,       // asks for an atomic
  atomic_data = 7,  // its answer
  update = 8,       // grants, acknowledgements, window given back
  announce = 9,     // a message waits for a grant (shared receive queues)
  bind = 10,        // from now on `slot` means the region with this key
  unbind = 11,
  flush = 12,  // wants an acknowledgement of everything before it
  close = 13,  // nothing of the send side follows; wants close_ack
  close_ack = 14,
  whole_send = 15,   // a message of one frame
  whole_write = 16,  // a write of one frame, without immediate
  pulls = 17,        // the peer may offer payload from now on, see offers.hpp
  offer = 18,        // in place of the open operation's payload: a token by which it can be fetched
  taken = 19,        // how many offers were fetched since the start
};

// Flags of a header.
inline constexpr std::uint8_t immediate = 1 << 0;  // carries an immediate
inline constexpr std::uint8_t charged =
    1 << 1;  // sent without a grant: uses the window for unexpected messages
inline constexpr std::uint8_t acknowledge = 1 << 2;  // wants an update soon
inline constexpr std::uint8_t all_flags = immediate | charged | acknowledge;

// Those that a type can carry.
[[nodiscard]] constexpr std::uint8_t flags_of(Type type) noexcept {
  switch (type) {
    case Type::send:
    case Type::whole_send:
    case Type::write:
      return all_flags;
    case Type::whole_write:
    case Type::read:
    case Type::atomic:
    case Type::flush:
      return acknowledge;
    default:
      return 0;
  }
}

struct Header {
  std::uint8_t type;
  std::uint8_t flags;
  std::uint16_t slot;    // whole_write: of the region; else 0
  std::uint32_t length;  // payload bytes in this frame
  std::uint64_t word;    // by type, see below
};
static_assert(sizeof(Header) == 16);

// send: word = the message's whole length
struct SendExtension {
  std::uint32_t immediate;
  std::uint32_t zero;
};
// write, read: word = offset in the region
struct AccessExtension {
  std::uint32_t slot;
  std::uint32_t immediate;
  std::uint64_t total;  // the operation's whole length
};
// atomic: word = offset in the region
struct AtomicExtension {
  std::uint32_t slot;
  std::uint32_t swap;  // 0 fetch_add, 1 compare_swap
  std::uint64_t operand;
  std::uint64_t compare;
};
// update: word = window bytes given back since the start
struct UpdateExtension {
  std::uint64_t granted;       // messages that may come, counted since the start
  std::uint32_t acknowledged;  // one-sided operations carried out since the start, modulo 2^32
  std::uint32_t zero;
};
// bind: word = slot
struct BindExtension {
  std::uint64_t region;
  std::uint64_t secret[2];
};
inline constexpr std::uint64_t most_immediate = 0xffffffff;
inline constexpr std::size_t max_token = 256;  // bytes of an offer's token
// whole_send: word = the immediate, or 0. whole_write: word = offset in the region.
// atomic_data: word = the value found. announce: word = the message's whole length. unbind: word = slot.
// offer: word = the operation's whole length, payload = the token. taken: word = the count.

inline constexpr std::size_t max_header = sizeof(Header) + sizeof(AtomicExtension);
inline constexpr std::size_t no_such_type = ~std::size_t{0};

// Bytes of header and extension; no_such_type for an unknown type.
[[nodiscard]] constexpr std::size_t header_size(std::uint8_t type) noexcept {
  switch (static_cast<Type>(type)) {
    case Type::send:
      return sizeof(Header) + sizeof(SendExtension);
    case Type::write:
    case Type::read:
      return sizeof(Header) + sizeof(AccessExtension);
    case Type::atomic:
      return sizeof(Header) + sizeof(AtomicExtension);
    case Type::update:
      return sizeof(Header) + sizeof(UpdateExtension);
    case Type::bind:
      return sizeof(Header) + sizeof(BindExtension);
    case Type::more:
    case Type::read_data:
    case Type::atomic_data:
    case Type::announce:
    case Type::unbind:
    case Type::flush:
    case Type::close:
    case Type::close_ack:
    case Type::whole_send:
    case Type::whole_write:
    case Type::pulls:
    case Type::offer:
    case Type::taken:
      return sizeof(Header);
  }
  return no_such_type;
}

static_assert(header_size(static_cast<std::uint8_t>(Type::bind)) <= max_header);

template <class T>
[[nodiscard]] T load(const std::byte* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class T>
std::byte* store(std::byte* to, const T& value) noexcept {
  std::memcpy(to, &value, sizeof value);
  return to + sizeof value;
}

// A message of one frame that has nothing but its bytes: a transport whose messages keep their lengths can
// leave the header out, and make it anew at the other side.
[[nodiscard]] inline bool is_plain_message(const std::byte* frame, std::size_t length) noexcept {
  if (length < sizeof(Header)) return false;
  const auto header = load<Header>(frame);
  return header.type == static_cast<std::uint8_t>(Type::whole_send) && header.flags == 0 &&
         header.slot == 0 && header.word == 0 && header.length == length - sizeof(Header);
}
inline void store_plain_header(std::byte* at, std::size_t length) noexcept {
  store(at, Header{static_cast<std::uint8_t>(Type::whole_send), 0, 0, static_cast<std::uint32_t>(length), 0});
}

}  // namespace weft::engine::wire
