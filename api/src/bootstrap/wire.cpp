#include "bootstrap/wire.hpp"

#include <algorithm>
#include <bit>

#include "bootstrap/bytes.hpp"

namespace weft::core::wire {

namespace {

constexpr std::size_t max_end_text = 256;

ByteWriter begin_frame(FrameType type) {
  ByteWriter writer;
  writer.integer(std::uint32_t{0});
  writer.integer(static_cast<std::uint16_t>(type));
  writer.integer(std::uint16_t{0});
  return writer;
}

Bytes finish_frame(ByteWriter writer) {
  Bytes bytes = std::move(writer.bytes());
  const auto length = static_cast<std::uint32_t>(bytes.size() - header_size);
  for (std::size_t i = 0; i < 4; ++i) bytes[i] = static_cast<std::byte>(length >> (8 * i) & 0xff);
  return bytes;
}

Bytes empty_frame(FrameType type) { return finish_frame(begin_frame(type)); }

void write_limits(ByteWriter& writer, const Limits& limits) {
  writer.integer(limits.max_message);
  writer.integer(limits.max_transfer);
  writer.integer(limits.max_inline);
  writer.integer(limits.max_segments);
  writer.integer(limits.send_depth);
  writer.integer(limits.receive_depth);
  writer.integer(limits.max_outstanding_reads);
  writer.integer(limits.unexpected_bytes);
}

// A peer that claims less than the contract promises is a peer that breaks the protocol.
Limits read_limits(ByteReader& reader) {
  Limits limits;
  limits.max_message = reader.integer<std::uint64_t>();
  limits.max_transfer = reader.integer<std::uint64_t>();
  limits.max_inline = reader.integer<std::uint32_t>();
  limits.max_segments = reader.integer<std::uint32_t>();
  limits.send_depth = reader.integer<std::uint32_t>();
  limits.receive_depth = reader.integer<std::uint32_t>();
  limits.max_outstanding_reads = reader.integer<std::uint32_t>();
  limits.unexpected_bytes = reader.integer<std::uint64_t>();
  if (limits.max_message < (std::uint64_t{1} << 20) || limits.max_transfer < (std::uint64_t{1} << 40) ||
      limits.max_inline < 32 || limits.max_segments < 4 || limits.send_depth == 0 ||
      limits.max_outstanding_reads == 0) {
    reader.fail();
  }
  return limits;
}

bool read_flag(ByteReader& reader) {
  const auto value = reader.integer<std::uint8_t>();
  if (value > 1) reader.fail();
  return value == 1;
}

Status read_status(ByteReader& reader, std::initializer_list<Status> allowed) {
  const auto status = static_cast<Status>(reader.integer<std::uint8_t>());
  if (std::find(allowed.begin(), allowed.end(), status) == allowed.end()) reader.fail();
  return status;
}

std::uint32_t read_endpoint(ByteReader& reader) {
  const auto id = reader.integer<std::uint32_t>();
  if (id == 0) reader.fail();
  return id;
}

template <typename FrameBody>
std::optional<FrameBody> if_complete(const ByteReader& reader, FrameBody& frame) {
  if (!reader.complete()) return std::nullopt;
  return std::move(frame);
}

}  // namespace

std::uint8_t host_byte_order() noexcept { return std::endian::native == std::endian::little ? 1 : 2; }

Bytes encode(const Preamble& preamble) {
  ByteWriter writer;
  writer.integer(preamble.magic);
  writer.integer(preamble.lowest);
  writer.integer(preamble.highest);
  writer.integer(preamble.byte_order);
  writer.integer(preamble.kind);
  writer.integer(std::uint16_t{0});
  return std::move(writer.bytes());
}

Preamble decode_preamble(std::span<const std::byte, preamble_size> bytes) noexcept {
  ByteReader reader(bytes);
  Preamble preamble;
  preamble.magic = reader.integer<std::uint32_t>();
  preamble.lowest = reader.integer<std::uint16_t>();
  preamble.highest = reader.integer<std::uint16_t>();
  preamble.byte_order = reader.integer<std::uint8_t>();
  preamble.kind = reader.integer<std::uint8_t>();
  return preamble;
}

std::optional<Header> decode_header(std::span<const std::byte, header_size> bytes) noexcept {
  ByteReader reader(bytes);
  Header header;
  header.length = reader.integer<std::uint32_t>();
  header.type = static_cast<FrameType>(reader.integer<std::uint16_t>());
  const auto zero = reader.integer<std::uint16_t>();
  if (header.length > max_payload || zero != 0) return std::nullopt;
  switch (header.type) {
    case FrameType::hello:
    case FrameType::welcome:
    case FrameType::refuse:
    case FrameType::linked:
    case FrameType::accept:
    case FrameType::reject:
    case FrameType::ready:
    case FrameType::go:
    case FrameType::link:
    case FrameType::link_ok:
    case FrameType::end:
    case FrameType::ping:
    case FrameType::pong:
    case FrameType::ring:
      return header;
  }
  return std::nullopt;
}

Bytes encode(const Hello& frame) {
  ByteWriter writer = begin_frame(FrameType::hello);
  writer.raw(frame.context);
  writer.text(frame.provider, max_name);
  writer.text(frame.provider_version, max_version_text);
  writer.integer(frame.protocol.lowest);
  writer.integer(frame.protocol.highest);
  const auto count = static_cast<std::uint8_t>(std::min(frame.available.size(), max_providers));
  writer.integer(count);
  for (std::size_t i = 0; i < count; ++i) writer.text(frame.available[i], max_name);
  writer.integer(frame.endpoint);
  write_limits(writer, frame.limits);
  writer.integer(static_cast<std::uint8_t>(frame.keeps_connection));
  writer.blob(frame.blob);
  writer.blob(frame.private_data);
  return finish_frame(std::move(writer));
}

template <>
std::optional<Hello> decode<Hello>(std::span<const std::byte> payload) {
  ByteReader reader(payload);
  Hello frame;
  frame.context = reader.array<16>();
  frame.provider = reader.text(max_name);
  frame.provider_version = reader.text(max_version_text);
  frame.protocol.lowest = reader.integer<std::uint16_t>();
  frame.protocol.highest = reader.integer<std::uint16_t>();
  if (frame.protocol.lowest > frame.protocol.highest) reader.fail();
  const auto count = reader.integer<std::uint8_t>();
  if (count > max_providers) reader.fail();
  for (std::size_t i = 0; i < count && !reader.bad(); ++i) frame.available.push_back(reader.text(max_name));
  frame.endpoint = read_endpoint(reader);
  frame.limits = read_limits(reader);
  frame.keeps_connection = read_flag(reader);
  frame.blob = reader.blob(max_blob);
  frame.private_data = reader.blob(max_private_data);
  return if_complete(reader, frame);
}

Bytes encode(const Welcome& frame) {
  ByteWriter writer = begin_frame(FrameType::welcome);
  writer.integer(frame.version);
  writer.integer(frame.protocol);
  writer.raw(frame.context);
  writer.raw(frame.token);
  return finish_frame(std::move(writer));
}

template <>
std::optional<Welcome> decode<Welcome>(std::span<const std::byte> payload) {
  ByteReader reader(payload);
  Welcome frame;
  frame.version = reader.integer<std::uint16_t>();
  frame.protocol = reader.integer<std::uint16_t>();
  frame.context = reader.array<16>();
  frame.token = reader.array<16>();
  if (frame.version < lowest_version || frame.version > highest_version) reader.fail();
  return if_complete(reader, frame);
}

Bytes encode(const Refuse& frame) {
  ByteWriter writer = begin_frame(FrameType::refuse);
  writer.integer(static_cast<std::uint8_t>(frame.status));
  writer.text(frame.text, max_text);
  return finish_frame(std::move(writer));
}

template <>
std::optional<Refuse> decode<Refuse>(std::span<const std::byte> payload) {
  ByteReader reader(payload);
  Refuse frame;
  frame.status = read_status(reader, {Status::refused, Status::timed_out, Status::unreachable,
                                      Status::incompatible, Status::protocol, Status::resource_limit,
                                      Status::cancelled, Status::rejected, Status::system_error});
  frame.text = reader.text(max_text);
  return if_complete(reader, frame);
}

Bytes encode(const Linked& frame) {
  ByteWriter writer = begin_frame(FrameType::linked);
  writer.raw(frame.token);
  return finish_frame(std::move(writer));
}

template <>
std::optional<Linked> decode<Linked>(std::span<const std::byte> payload) {
  ByteReader reader(payload);
  Linked frame;
  frame.token = reader.array<16>();
  return if_complete(reader, frame);
}

Bytes encode(const Accept& frame) {
  ByteWriter writer = begin_frame(FrameType::accept);
  writer.integer(frame.endpoint);
  write_limits(writer, frame.limits);
  writer.blob(frame.blob);
  writer.blob(frame.private_data);
  return finish_frame(std::move(writer));
}

template <>
std::optional<Accept> decode<Accept>(std::span<const std::byte> payload) {
  ByteReader reader(payload);
  Accept frame;
  frame.endpoint = read_endpoint(reader);
  frame.limits = read_limits(reader);
  frame.blob = reader.blob(max_blob);
  frame.private_data = reader.blob(max_private_data);
  return if_complete(reader, frame);
}

Bytes encode(const Reject& frame) {
  ByteWriter writer = begin_frame(FrameType::reject);
  writer.blob(frame.private_data);
  return finish_frame(std::move(writer));
}

template <>
std::optional<Reject> decode<Reject>(std::span<const std::byte> payload) {
  ByteReader reader(payload);
  Reject frame;
  frame.private_data = reader.blob(max_private_data);
  return if_complete(reader, frame);
}

Bytes encode(const LinkHello& frame) {
  ByteWriter writer = begin_frame(FrameType::link);
  writer.raw(frame.context);
  writer.raw(frame.token);
  return finish_frame(std::move(writer));
}

template <>
std::optional<LinkHello> decode<LinkHello>(std::span<const std::byte> payload) {
  ByteReader reader(payload);
  LinkHello frame;
  frame.context = reader.array<16>();
  frame.token = reader.array<16>();
  return if_complete(reader, frame);
}

Bytes encode(const End& frame) {
  ByteWriter writer = begin_frame(FrameType::end);
  writer.integer(frame.endpoint);
  writer.integer(static_cast<std::uint8_t>(frame.cause));
  writer.integer(static_cast<std::uint8_t>(frame.after_messages));
  writer.integer(frame.messages);
  writer.integer(frame.detail);
  writer.integer(frame.native_code);
  writer.text(frame.text, max_end_text);
  return finish_frame(std::move(writer));
}

template <>
std::optional<End> decode<End>(std::span<const std::byte> payload) {
  ByteReader reader(payload);
  End frame;
  frame.endpoint = read_endpoint(reader);
  frame.cause = read_status(reader, {Status::truncated, Status::remote_access_error, Status::disconnected,
                                     Status::aborted, Status::peer_lost, Status::protocol});
  frame.after_messages = read_flag(reader);
  if (frame.after_messages && frame.cause != Status::disconnected) reader.fail();
  frame.messages = reader.integer<std::uint64_t>();
  frame.detail = reader.integer<std::uint64_t>();
  frame.native_code = reader.integer<std::int32_t>();
  frame.text = reader.text(max_end_text);
  return if_complete(reader, frame);
}

Bytes encode(const Ring& frame) {
  ByteWriter writer = begin_frame(FrameType::ring);
  writer.integer(frame.endpoint);
  return finish_frame(std::move(writer));
}

template <>
std::optional<Ring> decode<Ring>(std::span<const std::byte> payload) {
  ByteReader reader(payload);
  Ring frame;
  frame.endpoint = read_endpoint(reader);
  return if_complete(reader, frame);
}

Bytes encode(const Ready&) { return empty_frame(FrameType::ready); }
Bytes encode(const Go&) { return empty_frame(FrameType::go); }
Bytes encode(const LinkOk&) { return empty_frame(FrameType::link_ok); }
Bytes encode(const Ping&) { return empty_frame(FrameType::ping); }
Bytes encode(const Pong&) { return empty_frame(FrameType::pong); }

Limits negotiated(const Limits& mine, const Limits& theirs) noexcept {
  Limits limits;
  limits.max_message = std::min(mine.max_message, theirs.max_message);
  limits.max_transfer = std::min(mine.max_transfer, theirs.max_transfer);
  limits.max_inline = std::min(mine.max_inline, theirs.max_inline);
  limits.max_segments = std::min(mine.max_segments, theirs.max_segments);
  limits.send_depth = std::min(mine.send_depth, theirs.send_depth);
  limits.receive_depth = std::min(mine.receive_depth, theirs.receive_depth);
  limits.max_outstanding_reads = std::min(mine.max_outstanding_reads, theirs.max_outstanding_reads);
  limits.unexpected_bytes = std::min(mine.unexpected_bytes, theirs.unexpected_bytes);
  return limits;
}

}  // namespace weft::core::wire
